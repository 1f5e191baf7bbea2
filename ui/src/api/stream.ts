// One connection for the changes of a workspace, opened again whenever it breaks.
import type { Schemas } from "./client";
import type { LiveMessage } from "./live";

const AGAIN_MS = 1000;

/** `address` is that of the stream: of the workspace that is looked at. */
export function followStream(address: string, tell: (message: LiveMessage) => void): void {
  const open = () => {
    const source = new EventSource(address);
    source.onopen = () => {
      tell({ kind: "state", state: "open" });
    };
    source.addEventListener("changed", (event: MessageEvent<string>) => {
      tell({ kind: "changed", changes: JSON.parse(event.data) as Schemas["Changes"] });
    });
    source.onerror = () => {
      tell({ kind: "state", state: "reconnecting" });
      // A server that answers with a refusal, or not at all, may do so for good in the eyes of the browser.
      source.close();
      setTimeout(open, AGAIN_MS);
    };
  };
  open();
}
