// Metadata and previews: what is shown of values that anybody may have attached, and that nothing of it can do harm.
import { createElement } from "react";
import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, test } from "vitest";
import { columnsOf, nullsText } from "../src/assets/DataPanel";
import { blocksOf, inlineOf, safeHref } from "../src/parts/markdownBlocks";
import { Markdown } from "../src/parts/Markdown";
import { DataTable, Metadata, pictureHref, Value } from "../src/parts/Metadata";
import { lineOf, shownOf } from "../src/parts/metadataKinds";

const html = (text: string) => renderToStaticMarkup(createElement(Markdown, { text }));
const value = (of: unknown) => renderToStaticMarkup(createElement(Value, { name: "it", value: of }));

describe("Markdown", () => {
  test("headings, words, lists, tables, code and quotes are drawn with elements", () => {
    expect(html("# Delays\n\n**3** of *10* `late`, see [the report](https://example.org/a)")).toBe(
      '<div class="markdown"><h3>Delays</h3><p><strong>3</strong> of <i>10</i> <code>late</code>, see <a href="https://example.org/a" target="_blank" rel="noopener noreferrer" class="away">the report</a></p></div>',
    );
    expect(html("- one\n- two\n  - three\n\n3. x\n4. y")).toContain("<ul><li>one</li><li><p>two</p><ul><li>three</li></ul></li></ul><ol start=\"3\"><li>x</li><li>y</li></ol>");
    expect(blocksOf("| a | b |\n|---|--:|\n| 1 | x\\|y |")[0]).toMatchObject({ kind: "table", rows: [[[{ text: "1" }], [{ text: "x|y" }]]] });
    expect(blocksOf("```python\n# no heading\n<b>\n```\n> said\n\n---")).toEqual([{ kind: "code", text: "# no heading\n<b>" }, { kind: "quote", of: [{ kind: "paragraph", of: [{ kind: "text", text: "said" }] }] }, { kind: "rule" }]);
    expect(inlineOf("a_b_c 2*3*4 \\*not\\* https://example.org.")).toEqual([{ kind: "text", text: "a_b_c 2" }, { kind: "em", of: [{ kind: "text", text: "3" }] }, { kind: "text", text: "4 *not* " }, { kind: "link", href: "https://example.org", of: [{ kind: "text", text: "https://example.org" }] }, { kind: "text", text: "." }]);
  });

  test("HTML in it is text, and no link leads to a script", () => {
    const text = '<script>alert(1)</script> <img src=x onerror=alert(1)> [x](javascript:alert(1)) [y](data:text/html,x) ![z](https://example.org/t.png) <https://example.org/"onclick=>';
    const shown = html(text);
    expect(shown).not.toMatch(/<(script|img|iframe|style)/);
    expect(shown).toContain("&lt;script&gt;");
    expect([...shown.matchAll(/href="([^"]*)"/g)].map((each) => each[1])).toEqual(["https://example.org/t.png", "https://example.org/&quot;onclick="]);
    for (const address of ["javascript:alert(1)", " JavaScript:alert(1)", "data:text/html,x", "vbscript:x", "/relative", "//example.org", "java\nscript:x"]) expect(safeHref(address), address).toBeUndefined();
    expect(safeHref("mailto:a@example.org")).toBe("mailto:a@example.org");
  });

  test("what nests without end, and what never closes, is shown and ends", () => {
    const start = performance.now();
    for (const text of ["> ".repeat(5000) + "x", "*".repeat(20_000), "[".repeat(20_000), "`".repeat(9999), "- ".repeat(3000), "|".repeat(5000) + "\n|-|", "**a ".repeat(3000), "_a".repeat(5000)]) html(text);
    expect(performance.now() - start).toBeLessThan(5000);
  });
});

describe("metadata", () => {
  test("everything is shown as what it is", () => {
    expect(value({ $servo: "md", text: "**late**" })).toContain("<strong>late</strong>");
    expect(value({ $servo: "url", url: "https://example.org", text: "the report" })).toContain('href="https://example.org"');
    expect(value({ $servo: "url", url: "javascript:alert(1)", text: "click" })).not.toContain("href");
    expect(value({ $servo: "table", columns: ["carrier", "flights"], rows: [["AA", 3], [null, 4]], row_count: 200 })).toMatch(/AA.*null.*the first 2 of 200 rows/s);
    expect(value({ $servo: "image", media_type: "image/png", byte_size: 68, file: "_plot-delays.png" })).toContain("_plot-delays.png");
    expect(value({ $servo: "image", media_type: "image/svg+xml", byte_size: 6, base64: "PHN2Zy8+" })).toContain('src="data:image/svg+xml;base64,PHN2Zy8+"');
    expect(value({ $servo: "image", media_type: "text/html", byte_size: 6, base64: "PHN2Zy8+" })).not.toContain("data:");
    const of = { asset: "raw/a b", materialization: "01X", partition: "date=2026-01-01,region=eu" };
    expect(pictureHref(of, "_plot-ö.png")).toBe("/api/v1/assets/raw/a%20b/materializations/01X/files/_plot-%C3%B6.png?partition=date%3D2026-01-01%2Cregion%3Deu");
    expect(renderToStaticMarkup(createElement(Metadata, { of: { plot: { $servo: "image", media_type: "image/png", byte_size: 68, file: "_plot-a.png" } }, materialization: { ...of, partition: null } }))).toContain('src="/api/v1/assets/raw/a%20b/materializations/01X/files/_plot-a.png"');
    expect(value({ rows: [1, { a: "<b>" }] })).toContain("&quot;&lt;b&gt;&quot;");
    expect(value({ least: 1, most: [2, 3] })).toContain("{&quot;least&quot;:1,&quot;most&quot;:[2,3]}");
    expect(value(3)).toBe('<span class="mono">3</span>');
    expect(shownOf({ $servo: "md" })).toMatchObject({ kind: "json" });
    expect(shownOf({ $servo: "table", columns: "x", rows: 3 })).toMatchObject({ kind: "json" });
  });

  test("nothing that is drawn has a style or a script inline", () => {
    const all = renderToStaticMarkup(createElement(Metadata, { of: { notes: { $servo: "md", text: "# a\n\n|a|\n|-|\n|1|" }, first: { $servo: "table", columns: ["a"], rows: [[1]], row_count: 1 }, plain: { a: 1 } } }));
    expect(all).not.toMatch(/ style=| on\w+=|<script/);
  });

  test("a row of a list says it in a few words", () => {
    expect([{ $servo: "md", text: "\n# **3** late" }, { $servo: "table", columns: ["a"], rows: [[1]], row_count: 12 }, { $servo: "url", url: "https://x.org", text: "x" }, { $servo: "image", byte_size: 2048, media_type: "image/png", file: "a" }, "text", 3, { a: [1] }].map(lineOf)).toEqual(["3 late", "12 rows", "x", "picture, 2.05 kB", "text", "3", '{"a":[1]}']);
  });
});

describe("previews of data", () => {
  test("columns are those of the schema, with their types and how many values they lack", () => {
    const columns = columnsOf({ schema: { a: "int64", b: "string" }, nulls: { a: 0, b: 2 }, preview: [{ a: 1, b: null, c: true }] as never });
    expect(columns).toEqual([{ name: "a", type: "int64", nulls: 0 }, { name: "b", type: "string", nulls: 2 }, { name: "c", type: undefined, nulls: undefined }]);
    expect(columns.map((column) => nullsText(column, 1000))).toEqual(["no nulls", "2 nulls, <1 %", ""]);
    expect(nullsText({ name: "b", type: "string", nulls: 1 }, 4)).toBe("1 null, 25 %");
  });

  test("numbers stand right, what is missing is marked, and text is text", () => {
    const drawn = renderToStaticMarkup(createElement(DataTable, { label: "rows", columns: ["n", "t"], rows: [[1, "<i>"], [null, null]] }));
    expect(drawn).toContain('<td class="right">1</td><td>&lt;i&gt;</td>');
    expect(drawn.match(/class="muted">null/g)).toHaveLength(2);
  });
});
