// Markdown, drawn with elements: nothing of it is ever read as HTML.
import { Fragment, type ReactNode } from "react";
import { blocksOf, type Block, type Inline } from "./markdownBlocks";

function words(of: readonly Inline[]): ReactNode {
  return of.map((each, index) => {
    switch (each.kind) {
      case "text":
        return <Fragment key={index}>{each.text}</Fragment>;
      case "code":
        return <code key={index}>{each.text}</code>;
      case "strong":
        return <strong key={index}>{words(each.of)}</strong>;
      case "em":
        return <i key={index}>{words(each.of)}</i>;
      case "del":
        return <del key={index}>{words(each.of)}</del>;
      case "link":
        return (
          <Away key={index} href={each.href}>
            {words(each.of)}
          </Away>
        );
    }
  });
}

/** A link to elsewhere, which is told nothing of where one comes from. */
export function Away({ href, children }: { href: string; children: ReactNode }) {
  return (
    <a href={href} target="_blank" rel="noopener noreferrer" className="away">
      {children}
    </a>
  );
}

function drawn(block: Block, index: number): ReactNode {
  switch (block.kind) {
    case "heading":
      // Headings of pages stay above those of what is shown on them.
      return block.level <= 2 ? <h3 key={index}>{words(block.of)}</h3> : <h4 key={index}>{words(block.of)}</h4>;
    case "paragraph":
      return <p key={index}>{words(block.of)}</p>;
    case "code":
      return (
        <pre key={index} tabIndex={0}>
          {block.text}
        </pre>
      );
    case "list": {
      const items = block.items.map((item, position) => <li key={position}>{item.length === 1 && item[0]?.kind === "paragraph" ? words(item[0].of) : item.map(drawn)}</li>);
      return block.isOrdered ? (
        <ol key={index} start={block.start}>
          {items}
        </ol>
      ) : (
        <ul key={index}>{items}</ul>
      );
    }
    case "quote":
      return <blockquote key={index}>{block.of.map(drawn)}</blockquote>;
    case "table":
      return (
        <div key={index} className="scroll" tabIndex={0} role="group" aria-label="Table">
          <table className="table">
            <thead>
              <tr>
                {block.head.map((cell, position) => (
                  <th key={position}>{words(cell)}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {block.rows.map((row, line) => (
                <tr key={line}>
                  {row.map((cell, position) => (
                    <td key={position}>{words(cell)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    case "rule":
      return <hr key={index} />;
  }
}

export function Markdown({ text }: { text: string }) {
  return <div className="markdown">{blocksOf(text).map(drawn)}</div>;
}
