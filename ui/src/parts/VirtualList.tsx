// A list of any length: rows that are seen exist, the next page is asked for when the end comes near. j and k move, Enter opens.
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, type ReactNode } from "react";
import { useLocation } from "wouter";
import { useFlashes } from "./useFlashes";
import { useRowKeys } from "./useRowKeys";

interface Props<T> {
  items: readonly T[];
  columns: string;
  head: ReactNode;
  row: (item: T) => ReactNode;
  id: (item: T) => string;
  href: (item: T) => string;
  more?: (() => void) | undefined;
  /** What of a row makes it flash when it changes. */
  version?: (item: T) => string;
  height?: string;
  label: string;
}

const ROW = 34;

export function VirtualList<T>({ items, columns, head, row, id, href, more, version, height = "calc(100dvh - 220px)", label }: Props<T>) {
  const scroller = useRef<HTMLDivElement>(null);
  const flashing = useFlashes(items, id, version);
  const [, navigate] = useLocation();
  const virtual = useVirtualizer({ count: items.length, getScrollElement: () => scroller.current, estimateSize: () => ROW, overscan: 12 });
  const shown = virtual.getVirtualItems();
  const last = shown.at(-1)?.index ?? 0;
  useEffect(() => {
    if (more !== undefined && items.length > 0 && last >= items.length - 15) more();
  }, [last, items.length, more]);
  const { current } = useRowKeys(scroller, items.length, (index) => {
    virtual.scrollToIndex(index);
  });
  return (
    <div className="vlist" tabIndex={-1}>
      <div className="vhead" style={{ gridTemplateColumns: columns }} aria-hidden="true">
        {head}
      </div>
      <div ref={scroller} className="scroll" style={{ maxHeight: height, minHeight: Math.min(items.length * ROW, 120) }} tabIndex={-1}>
        <div className="virtual" style={{ height: virtual.getTotalSize() }} role="list" aria-label={label}>
          {shown.map((each) => {
            const item = items[each.index];
            if (item === undefined) return null;
            return (
              <div
                key={id(item)}
                role="listitem"
                data-index={each.index}
                tabIndex={0}
                className={flashing.has(id(item)) ? "vrow flash" : "vrow"}
                style={{ transform: `translateY(${String(each.start)}px)`, height: ROW, gridTemplateColumns: columns }}
                onFocus={() => {
                  current.current = each.index;
                }}
                onKeyDown={(event) => {
                  if (event.key === "Enter" && event.target === event.currentTarget) navigate(href(item));
                }}
                onClick={(event) => {
                  if (event.target instanceof HTMLElement && event.target.closest("a, button") === null) navigate(href(item));
                }}
              >
                {row(item)}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}
