import { Empty } from "../parts/Panel";

export function NoAssets() {
  return (
    <Empty title="No assets yet">
      <p>Save a Python function with @asset in your project; it appears here when you save.</p>
      <pre>{`import servo

@servo.asset(namespace="raw")
def readings() -> list[float]:
    return [3.5, 7.25, 5.0]`}</pre>
    </Empty>
  );
}
