// A card of the graph: name and state; near by also what was made last, its checks and its owner.
import { useQuery } from "@tanstack/react-query";
import { memo } from "react";
import type { Schemas } from "../api/client";
import { materializationQuery } from "../api/queries";
import { bytes, count, dotted, plural } from "../parts/format";
import { Mark, type Tone } from "../parts/State";
import { Ago } from "../parts/Time";
import { WORST, type Card } from "./grouping";

interface Properties {
  card: Card;
  index: number;
  x: number;
  y: number;
  isNear: boolean;
  /** Whether what is only asked for near by is wanted. */
  isSeen: boolean;
  isSelected: boolean;
  isDim: boolean;
  onHover: (index: number) => void;
  onSelect: (card: Card) => void;
  onOpen: (card: Card) => void;
}

export const nameOf = ({ node, group }: Card) => (node === undefined ? group : dotted(node.asset_key));
/** What a card is, in a line. */
export const textOf = (card: Card) => `${nameOf(card)}: ${card.tones === undefined ? card.why : rollUp(card.tones)}`;

export const GraphCard = memo(function GraphCard({ card, index, x, y, isNear, isSeen, isSelected, isDim, onHover, onSelect, onOpen }: Properties) {
  const { node, members } = card;
  return (
    <button
      type="button"
      className={`node is-${card.tone}${isDim ? " dim" : ""}${node?.external === true ? " external" : ""}`}
      style={{ left: x, top: y }}
      aria-pressed={isSelected}
      title={textOf(card)}
      onMouseEnter={() => {
        onHover(index);
      }}
      onMouseLeave={() => {
        onHover(-1);
      }}
      onFocus={() => {
        onHover(index);
      }}
      onBlur={() => {
        onHover(-1);
      }}
      onClick={() => {
        onSelect(card);
      }}
      onDoubleClick={() => {
        onOpen(card);
      }}
    >
      <span className="name ellipsis">{nameOf(card)}</span>
      <span className="sub">
        <Mark tone={card.tone} />
        <span className="ellipsis">
          {members === undefined ? card.word : `${plural(members.length, "asset")} · ${card.word}`}
          {node?.partitioned === true && node.partitions.total > 1 ? ` · ${count(node.partitions.materialized)}/${count(node.partitions.total)}` : null}
          {node?.last_success_at == null || card.tone === "running" || node.partitioned === true ? null : (
            <>
              {" · "}
              <Ago at={node.last_success_at} />
            </>
          )}
        </span>
      </span>
      {isNear && node !== undefined ? <Near node={node} isSeen={isSeen} /> : null}
      {card.tones === undefined || members === undefined ? null : (
        <span className="bar rollup" role="img" aria-label={rollUp(card.tones)}>
          {WORST.map((tone) => (card.tones?.has(tone) === true ? <i key={tone} style={{ width: `${String(((card.tones.get(tone) ?? 0) / members.length) * 100)}%`, background: `var(--${tone})` }} /> : null))}
        </span>
      )}
    </button>
  );
});

function Near({ node, isSeen }: { node: Schemas["GraphNode"]; isSeen: boolean }) {
  const isMade = node.external !== true && node.partitions.materialized > 0;
  const { data } = useQuery(materializationQuery(node.asset_key, "", isMade && isSeen));
  const made = [
    data?.partition?.replace(/\w+=/g, "").replaceAll(",", " ") ?? undefined,
    data?.row_count == null ? undefined : plural(data.row_count, "row"),
    data?.byte_size == null ? undefined : bytes(data.byte_size),
  ].filter((each) => each !== undefined);
  const checks = node.checks ?? 0;
  const about = [
    checks === 0 ? "no checks" : `${plural(checks, "check")}${node.last_check_passed == null ? "" : node.last_check_passed ? ", passed" : ", failed"}`,
    node.owner ?? "no owner",
  ];
  return (
    <>
      <span className="sub">
        <span className="ellipsis">
          {isMade ? (
            <>
              <Ago at={node.last_success_at ?? undefined} />
              {made.map((each) => ` · ${each}`).join("")}
            </>
          ) : (
            "nothing was made"
          )}
        </span>
      </span>
      <span className="sub">
        <span className="ellipsis">{about.join(" · ")}</span>
      </span>
    </>
  );
}

/** "3 failed, 97 succeeded". */
const rollUp = (tones: ReadonlyMap<Tone, number>) => WORST.flatMap((tone) => (tones.has(tone) ? [`${count(tones.get(tone) ?? 0)} ${tone}`] : [])).join(", ");
