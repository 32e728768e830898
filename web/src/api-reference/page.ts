// The API reference at /api/docs: Swagger UI over the server's own OpenAPI document. It sends no requests of its own.
import "swagger-ui-dist/swagger-ui.css";
import "./page.css";
import SwaggerUI from "swagger-ui-dist/swagger-ui-es-bundle.js";

const dark = matchMedia("(prefers-color-scheme: dark)");

function followTheme(): void {
  document.documentElement.classList.toggle("dark-mode", dark.matches);
}

/** Name the lists of examples, and let the keyboard scroll long examples: Swagger UI does neither. */
function completeParts(): void {
  for (const list of document.querySelectorAll("select:not([aria-label], [id])")) {
    list.setAttribute("aria-label", "Example");
  }
  for (const example of document.querySelectorAll<HTMLElement>("pre.microlight:not([tabindex])")) example.tabIndex = 0;
}

function nothing(): () => null {
  return () => null;
}

followTheme();
dark.addEventListener("change", followTheme);
new MutationObserver(completeParts).observe(document.body, { childList: true, subtree: true });

SwaggerUI({
  url: "/api/openapi.json",
  dom_id: "#api",
  deepLinking: true,
  docExpansion: "none",
  defaultModelsExpandDepth: -1,
  syntaxHighlight: { activated: false },
  // The page shows requests but sends none: users must not enter a key here, and the only server is the one that serves
  // the page.
  supportedSubmitMethods: [],
  validatorUrl: null,
  plugins: [
    {
      wrapComponents: {
        ServersContainer: nothing,
        AuthorizeBtnContainer: nothing,
        AuthorizeOperationBtnContainer: nothing,
        authorizeOperationBtn: nothing,
        // A link inside the button that opens an operation cannot be reached by keyboard.
        DeepLink: () => (props: { text: unknown }) => props.text,
      },
    },
  ],
});
