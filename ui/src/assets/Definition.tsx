// What an asset is: where it is declared, what it reads, its configuration, and how that has changed.
import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import type { Schemas } from "../api/client";
import { versionsQuery } from "../api/queries";
import { assetHref, chosen, dotted } from "../parts/format";
import { Empty, Panel, ProblemBox, Skeleton } from "../parts/Panel";
import { Ago } from "../parts/Time";
import { deploymentHref } from "../settings/Deployments";
import { FieldChanges, readable } from "../settings/Diff";

type Detail = Schemas["AssetDetail"];

interface Declared {
  location?: { file: string; line: number };
  function?: string;
  config?: { type?: string; fields?: { name: string; type: string; required?: boolean; default?: string; description?: string }[] };
}

export function Definition({ detail }: { detail: Detail }) {
  const { location, function: name, config } = detail.definition as Declared;
  const fields = config?.fields ?? [];
  return (
    <div className="stack">
      <div className="columns">
        <div className="stack">
          <Panel label="Declaration">
            <dl className="facts body" style={{ paddingTop: 12 }}>
              <dt>Source</dt>
              <dd className="mono">{location === undefined ? "–" : `${location.file}:${String(location.line)}`}</dd>
              <dt>Function</dt>
              <dd className="mono">{name ?? "none: it is made outside of Servo"}</dd>
              <dt>Code version</dt>
              <dd className="mono">{detail.code_version ?? "–"}</dd>
              <dt>Group</dt>
              <dd>{detail.group ?? "–"}</dd>
              <dt>Kinds</dt>
              <dd>{(detail.kinds ?? []).join(", ") || "–"}</dd>
              <dt>Tags</dt>
              <dd>{Object.entries(detail.tags ?? {}).map(([tag, value]) => (value === "" ? tag : `${tag}=${value}`)).join(", ") || "–"}</dd>
              <dt>Timeout</dt>
              <dd>{detail.timeout_ms == null ? "–" : chosen(detail.timeout_ms)}</dd>
              <dt>Reads</dt>
              <dd>
                {detail.deps.length === 0
                  ? "nothing"
                  : detail.deps.map((dep) => (
                      <div key={dep.asset_key + (dep.parameter ?? "")}>
                        <Link href={assetHref(dep.asset_key)} className="mono">
                          {dotted(dep.asset_key)}
                        </Link>{" "}
                        <span className="muted">
                          {dep.parameter == null ? "order only" : `as ${dep.parameter}`}
                          {dep.partitioned ? `, ${mappingText(dep.mapping)}` : ""}
                        </span>
                      </div>
                    ))}
              </dd>
            </dl>
          </Panel>
          <Panel title="Configuration" label="Configuration">
            {fields.length === 0 ? (
              <p className="muted" style={{ padding: "0 12px 12px", fontSize: 13 }}>
                It takes none. A parameter of a class that extends <code>servo.Config</code> declares some.
              </p>
            ) : (
              <div className="scroll" tabIndex={0} role="group" aria-label="Fields of the configuration">
                <table className="table">
                  <thead>
                    <tr>
                      <th>Field</th>
                      <th>Type</th>
                      <th>Default</th>
                      <th>About</th>
                    </tr>
                  </thead>
                  <tbody>
                    {fields.map((field) => (
                      <tr key={field.name}>
                        <td className="mono">{field.name}</td>
                        <td className="mono">{field.type.replace("builtins.", "")}</td>
                        <td className="mono">{field.default === undefined ? field.required === true ? <span className="muted">required</span> : "–" : readable(field.default)}</td>
                        <td className="muted">{field.description ?? ""}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )}
          </Panel>
        </div>
        <Versions asset={detail.asset_key} />
      </div>
      <Panel title="As declared">
        <pre className="body" style={{ maxHeight: 480, overflow: "auto" }} tabIndex={0}>
          {JSON.stringify(detail.definition, undefined, 2)}
        </pre>
      </Panel>
    </div>
  );
}

const WORDS: Record<string, string> = { ADDED: "added", CHANGED: "changed", MOVED: "moved within the code", REMOVED: "removed" };

function Versions({ asset }: { asset: string }) {
  const query = useInfiniteQuery(versionsQuery(asset));
  const items = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Panel title="Versions" label="Versions">
      {query.error === null ? null : <ProblemBox error={query.error} again={() => void query.refetch()} />}
      {query.isPending ? <Skeleton rows={3} /> : null}
      {query.isSuccess && items.length === 0 ? <Empty title="No version is kept" /> : null}
      <ul className="diff body">
        {items.map((version) => (
          <li key={version.deployment}>
            <div className="row wrap">
              <Link href={deploymentHref(version.deployment)}>#{version.deployment}</Link>
              <span>{WORDS[version.change] ?? version.change.toLowerCase()}</span>
              <span className="muted">
                <Ago at={version.deployed_at} />
              </span>
              {version.code_version == null ? null : <span className="chip mono" title={`Code version ${version.code_version}`}>{version.code_version.replace("sha256:", "").slice(0, 8)}</span>}
            </div>
            <FieldChanges fields={(version.fields ?? []).filter((field) => !field.path.startsWith("location"))} more={version.more_fields ?? 0} />
          </li>
        ))}
      </ul>
      {query.hasNextPage ? (
        <div style={{ padding: "0 12px 12px" }}>
          <button type="button" className="button small" disabled={query.isFetchingNextPage} onClick={() => void query.fetchNextPage()}>
            Show older
          </button>
        </div>
      ) : null}
    </Panel>
  );
}

function mappingText(mapping: unknown): string {
  const { mapping: inner, kind, from, to } = mapping as { mapping?: { kind?: string; from?: number; to?: number }; kind?: string; from?: number; to?: number };
  const name = kind ?? inner?.kind ?? "same";
  const [first, last] = [from ?? inner?.from, to ?? inner?.to];
  return name === "window" && first !== undefined ? `window ${String(first)} to ${String(last ?? 0)}` : `${name} partition`;
}
