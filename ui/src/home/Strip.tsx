// The last day: a cell per half hour and group of assets, coloured by the worst of it. A click shows its runs.
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { Link } from "wouter";
import { assetsQuery, someRunsQuery } from "../api/queries";
import { count, plural } from "../parts/format";
import { Panel, Shown } from "../parts/Panel";
import { useNow } from "../parts/Time";
import { CELL_MS, CELLS, dayOf, fillOf, type Cell, type Day } from "./day";

const MOST = 100;
const clock = new Intl.DateTimeFormat("sv-SE", { hour: "2-digit", minute: "2-digit" });

export function Strip() {
  const now = useNow();
  // The cells move on at half hours, and so does the question.
  const end = Math.ceil(now / CELL_MS) * CELL_MS;
  const start = end - CELLS * CELL_MS;
  const since = new Date(start).toISOString();
  const newest = useQuery(someRunsQuery({ created_after: since }, MOST));
  const isCut = newest.data?.next_cursor != null;
  // Failures are known for longer than other runs.
  const failed = useQuery({ ...someRunsQuery({ created_after: since, state: "FAILED" }, MOST), enabled: isCut });
  const assets = useInfiniteQuery(assetsQuery("", { sort: "-last_success_at" }));
  const day = useMemo(
    () =>
      dayOf({
        start,
        newest: newest.data?.items ?? [],
        isCut,
        failed: (isCut ? failed.data?.items : undefined) ?? [],
        isFailedCut: isCut && failed.data?.next_cursor != null,
        assets: assets.data?.pages[0]?.items ?? [],
      }),
    [start, newest.data, isCut, failed.data, assets.data],
  );
  return (
    <Panel title="Last 24 hours" label="Last 24 hours" aside={<span className="muted">by group</span>}>
      <Shown query={newest} rows={1}>
        {() => (
          <div className="body">
            <Rows day={day} start={start} isCut={isCut} />
            {day.rows.length === 0 ? null : (
              <div className="row muted strip-ends">
                {[0, 6, 12, 18].map((hours) => (
                  <span key={hours}>{clock.format(start + hours * 2 * CELL_MS)}</span>
                ))}
                <span>now</span>
              </div>
            )}
            {isCut ? (
              <p className="muted strip-note">
                <span className="strip-sample is-unknown" aria-hidden="true" />
                Before {clock.format(day.knownSince)} only runs that failed and what was made last are known: there are more than {count(MOST)} runs. <Link href={`/runs?${new URLSearchParams({ created_after: since }).toString()}`} className="away">All runs of the day</Link>
              </p>
            ) : null}
          </div>
        )}
      </Shown>
    </Panel>
  );
}

function cellText(cell: Cell, at: number): string {
  const parts = [
    ...(cell.runs > 0 ? [`${cell.isKnown ? "" : "at least "}${plural(cell.runs, "run")}`] : []),
    ...(cell.failed > 0 ? [`${count(cell.failed)} failed`] : []),
    ...(cell.active > 0 ? [`${count(cell.active)} active`] : []),
    ...(cell.made > 0 ? [`${plural(cell.made, "asset")} made last then`] : []),
    ...(cell.isKnown ? [] : ["not all is known"]),
  ];
  return `${clock.format(at)}: ${parts.join(", ")}`;
}

function Rows({ day, start, isCut }: { day: Day; start: number; isCut: boolean }) {
  if (day.rows.length === 0) return <p className="muted strip-empty">{isCut ? "" : "No run in the last 24 hours."}</p>;
  return (
    <div className="stack strips">
      {day.rows.map(({ group, cells }) => (
        <div key={group}>
          <div className="muted strip-name">{group}</div>
          <div className="strip">
            {cells.map((cell, index) => {
              const at = start + index * CELL_MS;
              const fill = fillOf(cell);
              if (cell.runs + cell.made + cell.failed === 0) return <span key={index} className={fill} title={cell.isKnown ? undefined : cellText(cell, at)} />;
              const query = new URLSearchParams({ created_after: new Date(at).toISOString(), created_before: new Date(at + CELL_MS).toISOString() });
              const text = cellText(cell, at);
              return <Link key={index} href={`/runs?${query.toString()}`} className={`${fill}${cell.isKnown ? "" : " partly-known"}`} title={text} aria-label={`${group}, ${text}`} />;
            })}
          </div>
        </div>
      ))}
      {day.more > 0 ? <div className="muted strip-name">and {plural(day.more, "more group", "more groups")}</div> : null}
    </div>
  );
}
