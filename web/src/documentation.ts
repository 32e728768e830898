/** Pages of the documentation about the pages and nodes of the app. A test of the documentation opens each. */

/** By the first part of the page's address. */
const PAGES: Readonly<Record<string, string>> = {
  workflows: "/docs/how-to/web/#drawing-a-workflow",
  executions: "/docs/how-to/watching/",
  inbox: "/docs/how-to/people/#the-inbox",
  agents: "/docs/how-to/agents/",
  templates: "/docs/cookbook/",
  evaluations: "/docs/how-to/evaluations/",
  tools: "/docs/how-to/tools/",
  models: "/docs/how-to/models/",
  memory: "/docs/how-to/memory/",
  schedules: "/docs/how-to/triggers/#schedules",
  webhooks: "/docs/how-to/triggers/#webhooks",
  notifications: "/docs/how-to/notifications/",
  keys: "/docs/how-to/access/#keys",
  people: "/docs/how-to/access/",
  secrets: "/docs/how-to/secrets/",
  settings: "/docs/reference/settings/",
  audit: "/docs/how-to/access/#the-audit-log",
  usage: "/docs/how-to/observing/#usage-and-search",
  chat: "/docs/how-to/chat/",
};

const LANGUAGE = "/docs/reference/language/";
const ROUTES = `${LANGUAGE}#choose-a-route`;
const BRANCHES = `${LANGUAGE}#work-at-the-same-time`;
const PERSON = `${LANGUAGE}#ask-a-person`;
const MODEL = `${LANGUAGE}#let-a-model-work`;
const DATA = `${LANGUAGE}#move-data`;

const NODES: Readonly<Record<string, string>> = {
  agent: MODEL,
  prompt: MODEL,
  planner: MODEL,
  verifier: MODEL,
  tool_executor: MODEL,
  human: PERSON,
  checkpoint: PERSON,
  decision: ROUTES,
  conditional: ROUTES,
  transform: DATA,
  "structured-record": DATA,
  "template-render": DATA,
  parallel: BRANCHES,
  fanout: BRANCHES,
  join: BRANCHES,
  merge: BRANCHES,
  loop: `${LANGUAGE}#repeat`,
  code: "/docs/how-to/code/",
  http: "/docs/how-to/http/",
  memory: "/docs/how-to/memory/",
  tool: "/docs/how-to/tools/",
};

/** The documentation of a page of the app, by its address; null: there is none. */
export const pageDocumentation = (path: string): string | null => PAGES[path.split("/")[1] ?? ""] ?? null;

/** The documentation of a node type. */
export const nodeDocumentation = (type: string): string => NODES[type] ?? `${LANGUAGE}#nodes`;
