// The browser's own dialog: it holds the focus, closes on Escape and gives the focus back.
import { useEffect, useRef, type ReactNode } from "react";

interface Properties {
  title?: string;
  onClose: () => void;
  children: ReactNode;
  className?: string;
  label?: string;
  /** It shows something that is gone afterwards: a click beside it does not close it. */
  holds?: boolean;
}

export function Dialog({ title, onClose, children, className, label, holds = false }: Properties) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current;
    if (dialog === null) return;
    const before = document.activeElement;
    if (!dialog.open) dialog.showModal();
    // The browser would choose the button that closes it.
    dialog.querySelector<HTMLElement>("input, textarea, select")?.focus();
    return () => {
      if (dialog.open) dialog.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      className={className}
      aria-label={label ?? title}
      onCancel={(event) => {
        event.preventDefault();
        if (!holds) onClose();
      }}
      onMouseDown={(event) => {
        if (event.target === ref.current && !holds) onClose();
      }}
    >
      <div className="box">
        {title === undefined ? null : (
          <header>
            <h2 className="grow" style={{ fontSize: 16 }}>
              {title}
            </h2>
            <button type="button" className="button quiet small" onClick={onClose} aria-label="Close">
              ✕
            </button>
          </header>
        )}
        {children}
      </div>
    </dialog>
  );
}
