// In place of a page while the server does not know this browser. Comes back to the same page by itself.
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { Empty, Panel } from "../parts/Panel";

const LOOK_EVERY_MS = 2000;

export function SignedOut() {
  const queries = useQueryClient();
  useEffect(() => {
    const timer = setInterval(() => void queries.invalidateQueries(), LOOK_EVERY_MS);
    return () => {
      clearInterval(timer);
    };
  }, [queries]);
  return (
    <div className="page">
      <Panel label="Not signed in">
        <Empty title="This browser is not signed in">
          <p>The server lets in who can read its files. In the directory of the project, run:</p>
          <pre>servo open</pre>
          <p>This page goes on by itself when you are in.</p>
        </Empty>
      </Panel>
    </div>
  );
}
