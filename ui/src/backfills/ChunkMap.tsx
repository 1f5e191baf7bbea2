// A map of a backfill: a block for every chunk that is known, a cell for each of its partitions, and those to come.
import { Link } from "wouter";
import { count, plural, runHref } from "../parts/format";
import { blocksOf, stepOf, type Block, type CellState, type Chunk } from "./chunks";

const [CELL, GAP, ACROSS] = [10, 2, 10];
/** Cells that are drawn of what is to come. */
const MOST_UNPLANNED = 200;

export const FILL: Record<CellState, string> = {
  made: "var(--succeeded-fill)",
  failed: "var(--failed-fill)",
  skipped: "var(--skipped)",
  cancelled: "var(--border-strong)",
  running: "var(--running-fill)",
  waiting: "var(--queued-fill)",
};
const LEGEND: readonly (readonly [CellState | "unplanned", string])[] = [
  ["made", "made"],
  ["failed", "failed"],
  ["skipped", "skipped"],
  ["cancelled", "cancelled"],
  ["running", "running"],
  ["waiting", "waiting"],
  ["unplanned", "not planned"],
];

const sizeOf = (cells: number) => ({ width: Math.min(cells, ACROSS) * (CELL + GAP) - GAP, height: Math.ceil(cells / ACROSS) * (CELL + GAP) - GAP });
const placeOf = (index: number) => ({ x: (index % ACROSS) * (CELL + GAP), y: Math.floor(index / ACROSS) * (CELL + GAP), width: CELL, height: CELL, rx: 2 });

interface Properties {
  chunks: readonly Chunk[];
  /** Partitions that no chunk has. */
  unplanned: number;
  /** Planned chunks that are not known here. */
  earlier: number;
  /** Whether what is not planned never will be. */
  isEnded: boolean;
}

export function ChunkMap({ chunks, unplanned, earlier, isEnded }: Properties) {
  const step = stepOf(chunks);
  const blocks = blocksOf(chunks, step);
  const shown = new Set(blocks.flatMap((block) => block.cells.map((cell): string => cell.state)));
  if (unplanned > 0) shown.add("unplanned");
  return (
    <div className="body stack" style={{ gap: 10 }}>
      <div className="legend">
        {LEGEND.filter(([state]) => shown.has(state)).map(([state, word]) => (
          <span key={state}>
            <svg width="10" height="10" aria-hidden="true">
              {state === "unplanned" ? <rect x="0.5" y="0.5" width="9" height="9" rx="2" className="unplanned" /> : <rect width="10" height="10" rx="2" fill={FILL[state]} />}
            </svg>
            {word}
          </span>
        ))}
        <span>{step === 1 ? "a cell is a partition, a block a chunk" : `a cell is up to ${count(step)} partitions of a chunk`}</span>
      </div>
      <ul className="chunks" aria-label="Map of chunks">
        {earlier > 0 ? <li className="muted">{plural(earlier, "earlier chunk")} not shown</li> : null}
        {blocks.map((block) => (
          <li key={block.chunk.chunk_id}>
            <BlockOf block={block} />
          </li>
        ))}
        {unplanned > 0 ? (
          <li>
            <Unplanned partitions={unplanned} isEnded={isEnded} />
          </li>
        ) : null}
      </ul>
    </div>
  );
}

function BlockOf({ block }: { block: Block }) {
  return (
    <Link href={runHref(block.chunk.run_id)} aria-label={block.text} title={block.text}>
      <svg {...sizeOf(block.cells.length)} aria-hidden="true">
        {block.cells.map((cell, index) => (
          <rect key={index} className="cell" data-state={cell.state} {...placeOf(index)} fill={FILL[cell.state]}>
            <title>{`${cell.text}\n${block.text}`}</title>
          </rect>
        ))}
      </svg>
    </Link>
  );
}

/** What no chunk has: as many cells as fit, and how many there are in words. */
function Unplanned({ partitions, isEnded }: { partitions: number; isEnded: boolean }) {
  const cells = Math.min(partitions, MOST_UNPLANNED);
  const across = cells > 40 ? 20 : ACROSS;
  const text = `${plural(partitions, "partition")} ${isEnded ? "never planned" : "not planned yet"}`;
  return (
    <span className="unplanned-block">
      <svg width={Math.min(cells, across) * (CELL + GAP) - GAP} height={Math.ceil(cells / across) * (CELL + GAP) - GAP} role="img" aria-label={text}>
        {Array.from({ length: cells }, (_, index) => (
          <rect key={index} className="unplanned" x={(index % across) * (CELL + GAP) + 0.5} y={Math.floor(index / across) * (CELL + GAP) + 0.5} width={CELL - 1} height={CELL - 1} rx={2} />
        ))}
      </svg>
      <span className="muted">{text}</span>
    </span>
  );
}
