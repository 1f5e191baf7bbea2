import { layOut, type LayoutRequest } from "./layout";

self.onmessage = (event: MessageEvent<LayoutRequest>) => {
  const { id, count, edges } = event.data;
  self.postMessage({ id, layout: layOut(count, edges) });
};
