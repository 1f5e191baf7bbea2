import { useEffect, useRef, type RefObject } from "react";

/** j and k move the focus over the rows of a list; rows have `data-index`. */
export function useRowKeys(box: RefObject<HTMLElement | null>, count: number, show?: (index: number) => void): { current: RefObject<number> } {
  const current = useRef(-1);
  const scroll = useRef(show);
  useEffect(() => {
    scroll.current = show;
  }, [show]);
  useEffect(() => {
    if (count === 0) return;
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") !== null) return;
      if (event.target instanceof HTMLElement && event.target.closest("input, textarea, select") !== null) return;
      const step = event.key === "j" ? 1 : event.key === "k" ? -1 : 0;
      if (step === 0) return;
      event.preventDefault();
      current.current = Math.min(count - 1, Math.max(0, current.current + step));
      scroll.current?.(current.current);
      requestAnimationFrame(() => {
        box.current?.querySelector<HTMLElement>(`[data-index="${String(current.current)}"]`)?.focus();
      });
    };
    window.addEventListener("keydown", onKey);
    return () => {
      window.removeEventListener("keydown", onKey);
    };
  }, [box, count]);
  return { current };
}
