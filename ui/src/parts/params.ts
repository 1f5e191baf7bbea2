// View state lives in the address: filters, tab, zoom.
import { useCallback } from "react";
import { useSearchParams } from "wouter";

/** One parameter of the address, and how to change it. An empty value leaves the address. */
export function useParam(name: string, fallback = ""): [string, (value: string, more?: Record<string, string>) => void] {
  const [params, setParams] = useSearchParams();
  const value = params.get(name) ?? fallback;
  const set = useCallback(
    (next: string, more: Record<string, string> = {}) => {
      setParams(
        (before) => {
          const after = new URLSearchParams(before);
          for (const [key, each] of Object.entries({ [name]: next, ...more })) {
            if (each === "" || (key === name && each === fallback)) after.delete(key);
            else after.set(key, each);
          }
          return after;
        },
        { replace: true },
      );
    },
    [name, fallback, setParams],
  );
  return [value, set];
}
