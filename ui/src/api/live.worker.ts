// Shared by all pages of a browser: one connection, told to each of them.
import type { LiveMessage } from "./live";
import { followStream } from "./stream";

const ports = new Set<MessagePort>();
let state: LiveMessage = { kind: "state", state: "connecting" };

// Its name is the address of the stream: every workspace has a worker of its own.
followStream(self.name, (message) => {
  if (message.kind === "state") state = message;
  for (const port of ports) port.postMessage(message);
});

(self as unknown as SharedWorkerGlobalScope).onconnect = (event) => {
  const port = event.ports[0];
  if (port === undefined) return;
  ports.add(port);
  port.postMessage(state);
};
