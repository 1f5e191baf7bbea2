import { useEffect, useRef, useState, type RefObject } from "react";

/** Whether an element was ever in view: what is in it is not asked for before. */
export function useSeen<T extends Element>(): [RefObject<T | null>, boolean] {
  const ref = useRef<T>(null);
  const [isSeen, setSeen] = useState(false);
  useEffect(() => {
    const element = ref.current;
    if (element === null || isSeen) return;
    const observer = new IntersectionObserver((entries) => {
      if (entries.some((entry) => entry.isIntersecting)) setSeen(true);
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
    };
  }, [isSeen]);
  return [ref, isSeen];
}
