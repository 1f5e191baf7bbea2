// Groups of assets: closed ones are one card, with the edges of what is in them.
import type { Schemas } from "../api/client";
import { knownOfNode, statusOf } from "./status";
import type { Tone } from "../parts/State";

export type GraphData = Omit<Schemas["Graph"], "edges"> & { edges: readonly (readonly number[])[] };

export interface Card {
  /** The key of an asset, or `group:name`. */
  id: string;
  node?: Schemas["GraphNode"];
  /** Positions of the assets of a closed group. */
  members?: readonly number[];
  group: string;
  tone: Tone;
  word: string;
  why: string;
}

export interface Cards {
  cards: Card[];
  edges: [number, number][];
  groups: Map<string, number>;
}

const WORST: readonly Tone[] = ["failed", "blocked", "retry", "running", "stale", "queued", "missing", "succeeded", "skipped", "cancelled"];

export const groupOf = (node: Schemas["GraphNode"]) => node.group ?? node.asset_key.slice(0, node.asset_key.indexOf("/"));

export function cardsOf(graph: GraphData, isClosed: (group: string) => boolean, quarantined: ReadonlySet<string>): Cards {
  const groups = new Map<string, number>();
  for (const node of graph.nodes) groups.set(groupOf(node), (groups.get(groupOf(node)) ?? 0) + 1);
  const cards: Card[] = [];
  const places = new Map<string, number>();
  const cardOf: number[] = graph.nodes.map((node, index) => {
    const group = groupOf(node);
    const status = statusOf(knownOfNode(node), quarantined);
    if (!isClosed(group) || (groups.get(group) ?? 0) < 2) {
      cards.push({ id: node.asset_key, node, group, ...status });
      return cards.length - 1;
    }
    const id = `group:${group}`;
    const at = places.get(id);
    if (at === undefined) {
      places.set(id, cards.length);
      cards.push({ id, members: [index], group, ...status });
      return cards.length - 1;
    }
    const card = cards[at];
    if (card !== undefined) {
      card.members = [...(card.members ?? []), index];
      if (WORST.indexOf(status.tone) < WORST.indexOf(card.tone)) Object.assign(card, status);
    }
    return at;
  });
  const seen = new Set<number>();
  const edges: [number, number][] = [];
  for (const pair of graph.edges) {
    const from = cardOf[pair[0] ?? 0] ?? 0;
    const to = cardOf[pair[1] ?? 0] ?? 0;
    const name = from * cards.length + to;
    if (from === to || seen.has(name)) continue;
    seen.add(name);
    edges.push([from, to]);
  }
  return { cards, edges, groups };
}
