// Rows of a result: those that are seen exist. Columns are as wide as what is in them, up to a limit.
import { useVirtualizer } from "@tanstack/react-virtual";
import { useMemo, useRef } from "react";
import type { Schemas } from "../api/client";
import { shown } from "./csv";

type Result = Schemas["SqlResult"];

const ROW = 28;
const [NARROWEST, WIDEST] = [6, 44];
/** Rows that widths are taken from. */
const SAMPLE = 100;

export function widthsOf(result: Pick<Result, "columns" | "rows">): string {
  const widths = result.columns.map((column, at) => {
    const longest = result.rows.slice(0, SAMPLE).reduce((most, row) => Math.max(most, shown(row[at]).length), column.name.length);
    return Math.min(WIDEST, Math.max(NARROWEST, longest)) + 2;
  });
  return widths.map((width) => `minmax(${String(width)}ch, ${String(width)}fr)`).join(" ");
}

export function ResultTable({ result }: { result: Result }) {
  const scroller = useRef<HTMLDivElement>(null);
  const columns = useMemo(() => widthsOf(result), [result]);
  const virtual = useVirtualizer({ count: result.rows.length, getScrollElement: () => scroller.current, estimateSize: () => ROW, overscan: 20 });
  return (
    <div ref={scroller} className="scroll result" tabIndex={0} role="table" aria-label="Rows" aria-rowcount={result.rows.length + 1}>
      <div style={{ minWidth: "max-content" }}>
        <div className="result-head" role="row" style={{ gridTemplateColumns: columns }}>
          {result.columns.map((column, at) => (
            <span key={at} role="columnheader" className={column.number ? "right" : undefined} title={`${column.name}: ${column.type}`}>
              {column.name}
            </span>
          ))}
        </div>
        <div className="virtual" role="rowgroup" style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map((each) => (
            <div key={each.index} role="row" aria-rowindex={each.index + 2} className="result-row" style={{ transform: `translateY(${String(each.start)}px)`, height: ROW, gridTemplateColumns: columns }}>
              {result.columns.map((column, at) => {
                const value = result.rows[each.index]?.[at] as unknown;
                const text = column.time ? shown(value).replace(/\+00$/, "Z") : shown(value);
                return (
                  <span key={at} role="cell" className={column.number ? "right" : undefined} title={text.length > 20 ? text : undefined}>
                    {value === null ? <span className="muted">null</span> : text}
                  </span>
                );
              })}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}
