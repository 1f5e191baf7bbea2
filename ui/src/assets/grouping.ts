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
  members?: number[];
  /** How many of them have each state. */
  tones?: Map<Tone, number>;
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

/** The worst first. */
export const WORST: readonly Tone[] = ["failed", "blocked", "retry", "running", "stale", "queued", "missing", "succeeded", "skipped", "cancelled"];

export const groupOf = (node: { asset_key: string; group?: string | null }) => node.group ?? node.asset_key.slice(0, node.asset_key.indexOf("/"));

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
      cards.push({ id, members: [index], tones: new Map([[status.tone, 1]]), group, ...status });
      return cards.length - 1;
    }
    const card = cards[at];
    if (card !== undefined) {
      card.members?.push(index);
      card.tones?.set(status.tone, (card.tones.get(status.tone) ?? 0) + 1);
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

/** A row of the list: an asset, or the head of a group. */
export interface ListRow {
  group: string;
  asset?: Schemas["Asset"];
  /** Assets of the group that are shown. */
  size: number;
  /** Whether the code names the group; otherwise it is the namespace. */
  isNamed: boolean;
}

/** Assets with a head before each group, if they are in the order of groups. */
export function rowsOf(assets: readonly Schemas["Asset"][], isGrouped: boolean): ListRow[] {
  const rows: ListRow[] = [];
  const heads = new Map<string, ListRow>();
  for (const asset of assets) {
    const group = groupOf(asset);
    let head = heads.get(group);
    if (head === undefined) {
      head = { group, size: 0, isNamed: asset.group != null };
      heads.set(group, head);
      if (isGrouped) rows.push(head);
    }
    head.size++;
    rows.push({ group, asset, size: 0, isNamed: head.isNamed });
  }
  return rows;
}

/** The selection of a group. */
export const selectionOf = (row: ListRow) => (row.isNamed ? `group:${row.group}` : `${row.group}.*`);
