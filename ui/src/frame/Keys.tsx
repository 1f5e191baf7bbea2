import { PLACES } from "../app";
import { Dialog } from "../parts/Dialog";

const KEYS: [string, string][] = [
  ["Ctrl K", "search assets, runs and commands"],
  ["/", "to the filter of the page"],
  ["j  k", "down and up in a list"],
  ["Enter", "open what is focused"],
  ["m", "materialize"],
  ["?", "these keys"],
  ["Esc", "close"],
];

export function Keys({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title="Keys" onClose={onClose}>
      <div className="content">
        <dl className="facts">
          {[...KEYS, ...PLACES.map((place): [string, string] => [`g ${place.key}`, `go to ${place.name.toLowerCase()}`])].map(([key, what]) => (
            <div key={key} style={{ display: "contents" }}>
              <dt>
                <span className="key">{key}</span>
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
      </div>
    </Dialog>
  );
}
