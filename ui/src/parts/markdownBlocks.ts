// Markdown as a tree that pages draw with elements of their own: text stays text, whatever is in it.

export type Inline = { kind: "text"; text: string } | { kind: "code"; text: string } | { kind: "strong" | "em" | "del"; of: Inline[] } | { kind: "link"; href: string; of: Inline[] };

export type Block =
  | { kind: "heading"; level: number; of: Inline[] }
  | { kind: "paragraph"; of: Inline[] }
  | { kind: "code"; text: string }
  | { kind: "list"; isOrdered: boolean; start: number; items: Block[][] }
  | { kind: "quote"; of: Block[] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

/** An address that a link may lead to; none of a scheme that could do something. */
export function safeHref(text: string): string | undefined {
  const address = text.trim();
  try {
    const { protocol } = new URL(address);
    return ["http:", "https:", "mailto:"].includes(protocol) ? address : undefined;
  } catch {
    return undefined;
  }
}

const DEEPEST = 6;
/** Longer spans are text: what never closes must not be looked for at every place. */
const MARKS = /(`+)([^`]{1,500})\1(?!`)|(\*\*|__)(?=\S)([\s\S]{0,500}?\S)\3|~~(?=\S)([\s\S]{0,500}?\S)~~|\*(?=\S)([^*]{0,500}[^*\s\\])\*|(?<!\w)_(?=\S)([^_]{0,500}[^_\s])_(?!\w)|!?\[([^[\]\n]{0,500})\]\(([^()\s]{0,2000}(?:\([^()\s]{0,500}\)[^()\s]{0,500})?)(?:\s+"[^"]{0,500}")?\)|<(https?:\/\/[^\s<>]{1,2000})>|(https?:\/\/[^\s<>()]{1,2000}[^\s<>().,;:!?'"])|\\([\\`*_{}[\]()#+\-.!|~>])/g;

/** Words of a line. What is not understood stays as it was written. */
export function inlineOf(text: string, depth = 0): Inline[] {
  if (depth > DEEPEST) return [{ kind: "text", text }];
  const found: Inline[] = [];
  const say = (part: string) => {
    if (part === "") return;
    const last = found.at(-1);
    if (last?.kind === "text") last.text += part;
    else found.push({ kind: "text", text: part });
  };
  let at = 0;
  for (const match of text.matchAll(MARKS)) {
    if (match.index < at) continue;
    const [all, , code, , strong, del, star, low, label, target, angle, bare, escaped] = match;
    const em = star ?? low;
    say(text.slice(at, match.index));
    at = match.index + all.length;
    if (code !== undefined) found.push({ kind: "code", text: code.trim() });
    else if (strong !== undefined) found.push({ kind: "strong", of: inlineOf(strong, depth + 1) });
    else if (del !== undefined) found.push({ kind: "del", of: inlineOf(del, depth + 1) });
    else if (em !== undefined) found.push({ kind: "em", of: inlineOf(em, depth + 1) });
    else if (escaped !== undefined) say(escaped);
    else {
      const href = safeHref(target ?? angle ?? bare ?? "");
      const words = label ?? angle ?? bare ?? "";
      if (href === undefined) say(label === undefined ? all : words);
      else found.push({ kind: "link", href, of: label === undefined ? [{ kind: "text", text: words }] : inlineOf(words === "" ? href : words, depth + 1) });
    }
  }
  say(text.slice(at));
  return found;
}

const cells = (line: string): string[] =>
  line
    .trim()
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "")
    .split(/(?<!\\)\|/)
    .map((each) => each.trim().replaceAll("\\|", "|"));

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$/;
const RULE = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])\s+(.*)$/;
const DASHES = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

export function blocksOf(text: string, depth = 0): Block[] {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const found: Block[] = [];
  let at = 0;
  const line = () => lines[at] ?? "";
  while (at < lines.length) {
    if (line().trim() === "") {
      at++;
      continue;
    }
    const fence = FENCE.exec(line())?.[1];
    if (fence !== undefined) {
      const from = ++at;
      while (at < lines.length && !line().trim().startsWith(fence)) at++;
      found.push({ kind: "code", text: lines.slice(from, at).join("\n") });
      at++;
      continue;
    }
    const heading = HEADING.exec(line());
    if (heading !== null) {
      found.push({ kind: "heading", level: (heading[1] ?? "#").length, of: inlineOf(heading[2] ?? "") });
      at++;
      continue;
    }
    if (RULE.test(line())) {
      found.push({ kind: "rule" });
      at++;
      continue;
    }
    if (/^ {0,3}>/.test(line()) && depth < DEEPEST) {
      const from = at;
      while (at < lines.length && /^ {0,3}>/.test(line())) at++;
      found.push({ kind: "quote", of: blocksOf(lines.slice(from, at).map((each) => each.replace(/^ {0,3}> ?/, "")).join("\n"), depth + 1) });
      continue;
    }
    const first = ITEM.exec(line());
    if (first !== null && depth < DEEPEST) {
      const isOrdered = /\d/.test(first[2] ?? "");
      const items: Block[][] = [];
      while (at < lines.length) {
        const item = ITEM.exec(line());
        if (item === null || /\d/.test(item[2] ?? "") !== isOrdered) break;
        const inside = [item[3] ?? ""];
        at++;
        while (at < lines.length && (/^(\t| {2,})\S/.test(line()) || (line().trim() === "" && /^(\t| {2,})\S/.test(lines[at + 1] ?? "")))) {
          inside.push(line().replace(/^(\t| {1,4})/, ""));
          at++;
        }
        items.push(blocksOf(inside.join("\n"), depth + 1));
      }
      found.push({ kind: "list", isOrdered, start: isOrdered ? parseInt(first[2] ?? "1", 10) : 1, items });
      continue;
    }
    if (line().includes("|") && DASHES.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("-")) {
      const head = cells(line());
      at += 2;
      const rows: Inline[][][] = [];
      while (at < lines.length && line().includes("|")) {
        const row = cells(line());
        rows.push(head.map((_, index) => inlineOf(row[index] ?? "")));
        at++;
      }
      found.push({ kind: "table", head: head.map((each) => inlineOf(each)), rows });
      continue;
    }
    const from = at++;
    while (at < lines.length && line().trim() !== "" && !FENCE.test(line()) && !HEADING.test(line()) && !RULE.test(line()) && !/^ {0,3}>/.test(line()) && !ITEM.test(line())) at++;
    found.push({ kind: "paragraph", of: inlineOf(lines.slice(from, at).map((each) => each.trim()).join("\n")) });
  }
  return found;
}
