// The head of a page: where it belongs, what it is about, and what can be done.
import type { ReactNode } from "react";
import { Link } from "wouter";

interface Properties {
  /** The list that it is a part of. */
  of?: readonly [href: string, name: string];
  title: ReactNode;
  /** Beside the title. */
  children?: ReactNode;
  actions?: ReactNode;
}

export function PageHead({ of, title, children, actions }: Properties) {
  return (
    <div className="page-head">
      <h1>
        {of === undefined ? null : (
          <Link href={of[0]} className="crumb" style={{ fontWeight: 400 }}>
            {of[1]} /{" "}
          </Link>
        )}
        {title}
      </h1>
      {children}
      {actions === undefined ? null : <div className="actions">{actions}</div>}
    </div>
  );
}
