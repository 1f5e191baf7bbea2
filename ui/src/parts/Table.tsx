// A table that scrolls by itself where it is too wide, and a list of pages with everything that can happen to it.
import type { InfiniteData, UseInfiniteQueryResult } from "@tanstack/react-query";
import { useCallback, useMemo, useRef, type ReactNode } from "react";
import { useLocation } from "wouter";
import { ProblemBox, Skeleton } from "./Panel";
import { useFlashes } from "./useFlashes";
import { useRowKeys } from "./useRowKeys";

export interface Column<T> {
  /** Its head; what only readers are told is in `.sr`. */
  head: ReactNode;
  cell: (item: T) => ReactNode;
  className?: string;
  /** Longest text that a cell shows on hover. */
  title?: (item: T) => string | undefined;
}

interface TableProperties<T> {
  label: string;
  items: readonly T[];
  columns: readonly Column<T>[];
  id: (item: T) => string;
  /** Where a row leads: j, k and Enter go there. */
  href?: (item: T) => string;
  isCurrent?: (item: T) => boolean;
  /** What of a row makes it flash when it changes. */
  version?: (item: T) => string;
  onChoose?: (item: T) => void;
}

/** The head of a column of buttons. */
export const ACTIONS = <span className="sr">Actions</span>;

export function Table<T>({ label, items, columns, id, href, isCurrent, version, onChoose }: TableProperties<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [, navigate] = useLocation();
  const flashing = useFlashes(items, id, version);
  const { current } = useRowKeys(box, href === undefined ? 0 : items.length);
  return (
    <div ref={box} className="scroll" tabIndex={0} role="group" aria-label={label}>
      <table className="table">
        <thead>
          <tr>
            {columns.map((column, index) => (
              <th key={index} className={column.className}>
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item, index) => (
            <tr
              key={id(item)}
              className={flashing.has(id(item)) ? "flash" : undefined}
              data-current={isCurrent?.(item)}
              data-index={index}
              tabIndex={href === undefined ? undefined : -1}
              onFocus={() => {
                current.current = index;
              }}
              onKeyDown={(event) => {
                if (event.key === "Enter" && event.target === event.currentTarget && href !== undefined) navigate(href(item));
              }}
              onClick={(event) => {
                if (event.target instanceof HTMLElement && event.target.closest("a, button, summary") !== null) return;
                onChoose?.(item);
                if (href !== undefined && window.getSelection()?.isCollapsed !== false) navigate(href(item));
              }}
              style={href === undefined && onChoose === undefined ? undefined : { cursor: "pointer" }}
            >
              {columns.map((column, position) => (
                <td key={position} className={column.className} title={column.title?.(item)}>
                  {column.cell(item)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

type Pages<T> = UseInfiniteQueryResult<InfiniteData<{ items: T[] }>>;

/** The items of the pages that are there, and how to ask for the next one. */
export function usePages<T>(query: Pages<T>): { items: readonly T[]; more: () => void } {
  const items = useMemo(() => query.data?.pages.flatMap((page) => page.items) ?? [], [query.data]);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const more = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  return { items, more };
}

interface PagedProperties<T> {
  query: Pages<T>;
  /** Rows of the skeleton. */
  rows?: number;
  /** In place of nothing. */
  empty: ReactNode;
  /** The button that asks for the next page. */
  next?: string;
  /** Whether it is in a panel, which has no space of its own. */
  isInPanel?: boolean;
  children: (items: readonly T[]) => ReactNode;
}

export function Paged<T>({ query, rows = 6, empty, next = "Show older", isInPanel = false, children }: PagedProperties<T>) {
  const { items, more } = usePages(query);
  const around = isInPanel ? { padding: 12 } : undefined;
  return (
    <>
      {query.error === null ? null : (
        <div style={around}>
          <ProblemBox error={query.error} again={() => void query.refetch()} />
        </div>
      )}
      {query.isPending && query.error === null ? <Skeleton rows={rows} /> : null}
      {query.isSuccess && items.length === 0 ? empty : null}
      {items.length === 0 ? null : children(items)}
      {query.hasNextPage && items.length > 0 ? (
        <div style={around}>
          <button type="button" className={`button${isInPanel ? " small" : ""}`} disabled={query.isFetchingNextPage} onClick={more}>
            {next}
          </button>
        </div>
      ) : null}
    </>
  );
}
