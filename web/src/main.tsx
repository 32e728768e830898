import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { makeClient } from "./api/client";
import { me } from "./api/queries";
import "./app.css";
import { addTooltipsToCutText } from "./components/cutTextTooltips";
import { pageFrame } from "./components/pageFrames";
import { startLanguages } from "./i18n";
import { makeRouter } from "./router";
import { applyTheme, theme } from "./theme";

applyTheme(theme());
addTooltipsToCutText(document);
const client = makeClient();
const router = makeRouter();
// The page, the user and the texts load at the same time.
const languages = startLanguages();
void router.load();
if (pageFrame(location.pathname) === "app") void client.prefetchQuery(me());
await languages;

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
