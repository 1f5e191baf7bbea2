// SQL over Servo's tables and the data of assets: an editor, what there is to name, results as a table and as a chart.
import { useMutation } from "@tanstack/react-query";
import { useCallback, useEffect, useRef, useState } from "react";
import { answer, api, type Schemas } from "../api/client";
import { base } from "../api/workspace";
import { count, duration, plural } from "../parts/format";
import { useWhyNot } from "../parts/Act";
import { Empty, Panel, ProblemBox } from "../parts/Panel";
import { useParam } from "../parts/params";
import { toast } from "../parts/toasts";
import { Browser } from "./Browser";
import { Chart } from "./Chart";
import { csvOf } from "./csv";
import { History, remember } from "./History";
import { ResultTable } from "./ResultTable";

type Result = Schemas["SqlResult"];

const EXAMPLES: [string, string][] = [
  ["Runs by state", "select state, count(*) as runs\nfrom runs\ngroup by all\norder by runs desc"],
  ["Slowest tasks", "select task_key, attempt, finished_at - started_at as took\nfrom tasks\nwhere finished_at is not null\norder by took desc\nlimit 20"],
  ["Rows made by day", "select date_trunc('day', materialized_at) as day, sum(row_count)::bigint as rows\nfrom materializations\ngroup by all\norder by day"],
  ["Checks that failed", "select asset_key, check_name, count(*) as failures, max(checked_at) as last\nfrom check_results\nwhere not passed\ngroup by all\norder by failures desc"],
];

export default function SqlPage() {
  const [asked, setAsked] = useParam("q");
  const [view, setView] = useParam("view", "table");
  const [text, setText] = useState(asked === "" ? (EXAMPLES[0]?.[1] ?? "") : asked);
  const editor = useRef<HTMLTextAreaElement>(null);
  const stop = useRef<AbortController | undefined>(undefined);
  const run = useMutation<Result, Error, string>({
    mutationFn: async (query) => {
      stop.current?.abort();
      const controller = new AbortController();
      stop.current = controller;
      return answer(api.POST("/api/v1/sql", { body: { query }, signal: controller.signal }));
    },
    onSuccess: (result, query) => {
      remember({ query, at: Date.now(), rows: result.rows.length, ms: result.elapsed_ms ?? 0 });
    },
  });
  const { mutate, isPending, data, error, reset } = run;
  const start = useCallback(
    (query: string) => {
      if (query.trim() === "") return;
      setAsked(query);
      mutate(query);
    },
    [mutate, setAsked],
  );
  // A link that carries a query shows its result.
  const wasAsked = useRef(false);
  useEffect(() => {
    if (!wasAsked.current && asked !== "") mutate(asked);
    wasAsked.current = true;
    return () => stop.current?.abort();
  }, [asked, mutate]);
  const insert = (words: string) => {
    const field = editor.current;
    const [from, to] = [field?.selectionStart ?? text.length, field?.selectionEnd ?? text.length];
    setText(text.slice(0, from) + words + text.slice(to));
    requestAnimationFrame(() => {
      field?.focus();
      field?.setSelectionRange(from + words.length, from + words.length);
    });
  };
  const replace = (query: string) => {
    setText(query);
    editor.current?.focus();
  };
  const whyNot = useWhyNot("sql.run");
  const stopped = error?.name === "AbortError";
  return (
    <div className="page stack">
      <div className="page-head">
        <h1>SQL</h1>
        <span className="muted" style={{ fontSize: 13 }}>
          Read-only, over Servo’s tables and the data of assets
        </span>
      </div>
      <div className="sql">
        <Browser
          onTable={(name) => {
            replace(`select *\nfrom ${name}\nlimit 100`);
          }}
          onName={insert}
        />
        <div className="stack">
          <form
            className="panel editor"
            onSubmit={(event) => {
              event.preventDefault();
              start(text);
            }}
          >
            <textarea
              ref={editor}
              className="mono"
              aria-label="Query"
              spellCheck={false}
              rows={Math.min(18, Math.max(5, text.split("\n").length + 1))}
              value={text}
              onChange={(event) => {
                setText(event.target.value);
              }}
              onKeyDown={(event) => {
                if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
                  event.preventDefault();
                  start(text);
                }
              }}
            />
            <footer className="row wrap">
              <button type="submit" className="button primary" disabled={isPending || text.trim() === "" || whyNot !== undefined} title={whyNot}>
                {isPending ? "Running…" : "Run"}
              </button>
              <button
                type="button"
                className="button"
                disabled={!isPending}
                onClick={() => {
                  stop.current?.abort();
                }}
              >
                Stop
              </button>
              <span className="key hide-small">Ctrl Enter</span>
              <span className="grow" />
              <select
                className="field"
                aria-label="Examples"
                value=""
                onChange={(event) => {
                  const example = EXAMPLES.find(([name]) => name === event.target.value);
                  if (example !== undefined) replace(example[1]);
                }}
              >
                <option value="">Examples</option>
                {EXAMPLES.map(([name]) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
              <button
                type="button"
                className="button"
                disabled={text.trim() === ""}
                onClick={() => {
                  const link = `${location.origin}${base}/sql?q=${encodeURIComponent(text)}`;
                  void navigator.clipboard.writeText(link).then(
                    () => {
                      toast("The link is copied");
                    },
                    () => {
                      toast(link);
                    },
                  );
                }}
              >
                Copy link
              </button>
            </footer>
          </form>
          {error === null || stopped ? null : <ProblemBox error={error} />}
          {stopped ? (
            <p className="notice">
              The query was stopped.{" "}
              <button type="button" className="button small quiet" onClick={reset}>
                Dismiss
              </button>
            </p>
          ) : null}
          {data === undefined ? (
            <Panel label="Result">
              <Empty title={isPending ? "Running…" : "No result yet"}>{isPending ? <p>It ends after 20 seconds at the latest.</p> : <p>Ctrl Enter runs the query. Its first 1,000 rows are shown here.</p>}</Empty>
            </Panel>
          ) : (
            <Shown result={data} view={view} setView={setView} isOld={isPending} />
          )}
          <History onChoose={replace} />
        </div>
      </div>
    </div>
  );
}

function Shown({ result, view, setView, isOld }: { result: Result; view: string; setView: (view: string) => void; isOld: boolean }) {
  return (
    <div style={isOld ? { opacity: 0.5 } : undefined}>
      <Panel
        title={`${result.truncated ? "The first " : ""}${plural(result.rows.length, "row")}`}
        label="Result"
        aside={
          <>
            <span className="muted">
              {plural(result.columns.length, "column")} in {duration(result.elapsed_ms ?? 0)}
            </span>
            <span className="grow" />
            <span className="segments" role="group" aria-label="Shown as">
              {["table", "chart"].map((each) => (
                <button
                  key={each}
                  type="button"
                  aria-pressed={view === each}
                  onClick={() => {
                    setView(each);
                  }}
                >
                  {each === "table" ? "Table" : "Chart"}
                </button>
              ))}
            </span>
            <button
              type="button"
              className="button small"
              disabled={result.rows.length === 0}
              onClick={() => {
                save(csvOf(result));
              }}
            >
              Download CSV
            </button>
          </>
        }
      >
        {(result.warnings ?? []).map((warning) => (
          <p key={warning} className="notice" style={{ margin: "0 12px 8px" }}>
            {warning}
          </p>
        ))}
        {result.truncated ? (
          <p className="muted" style={{ padding: "0 12px 8px", fontSize: 13 }}>
            There are more than {count(result.rows.length)} rows: ask for fewer with limit or group by, or use servo sql for all.
          </p>
        ) : null}
        {result.rows.length === 0 ? <Empty title="No rows" /> : view === "chart" ? <Chart result={result} /> : <ResultTable result={result} />}
      </Panel>
    </div>
  );
}

function save(text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = "result.csv";
  link.click();
  URL.revokeObjectURL(url);
}
