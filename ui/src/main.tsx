import "./theme/base.css";
import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { RequestFailed } from "./api/client";
import { followChanges } from "./api/live";
import { base } from "./api/workspace";
import { App } from "./app";
import { applyTheme } from "./theme/theme";

applyTheme();

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // Changes are told by the server; what is here is good until then.
      staleTime: 30_000,
      refetchOnWindowFocus: false,
      retry: (failures, error) => failures < 2 && error instanceof RequestFailed && error.isTemporary,
      retryDelay: 800,
    },
  },
});
followChanges(queries);

const root = document.getElementById("root");
if (root !== null)
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <Router base={base}>
          <App />
        </Router>
      </QueryClientProvider>
    </StrictMode>,
  );
