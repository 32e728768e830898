import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ApiError } from "./api/http";
import "./app.css";
import { tellCutText } from "./components/cutText";
import { startLanguages } from "./i18n";
import { makeRouter } from "./router";
import { paint, theme } from "./theme";

paint(theme());
tellCutText(document);
await startLanguages();

/** What let somebody in opens nothing any more: they are asked who they are, whatever page they are on. */
function onError(why: unknown): void {
  if (why instanceof ApiError && why.status === 401 && !(client.getQueryState(["me"])?.error instanceof ApiError))
    void client.invalidateQueries({ queryKey: ["me"] });
}

const client: QueryClient = new QueryClient({
  queryCache: new QueryCache({ onError: (why, query) => (query.queryKey[0] === "me" ? undefined : onError(why)) }),
  mutationCache: new MutationCache({ onError: (why) => onError(why) }),
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      // What was refused stays refused; a server that is away is asked again.
      retry: (failures, why) => why instanceof ApiError && why.isAway && failures < 5,
    },
  },
});

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <RouterProvider router={makeRouter()} />
    </QueryClientProvider>
  </StrictMode>,
);
