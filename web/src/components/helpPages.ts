/** The page of the documentation for each page of the app, by the first part of its address. */

const DOCUMENTATION: Readonly<Record<string, string>> = {
  agents: "/docs/how-to/agents/",
  answer: "/docs/how-to/notifications/",
  audit: "/docs/how-to/access/",
  chat: "/docs/how-to/chat/",
  evaluations: "/docs/how-to/evaluations/",
  executions: "/docs/how-to/watching/",
  inbox: "/docs/how-to/people/",
  keys: "/docs/how-to/access/",
  memory: "/docs/how-to/memory/",
  models: "/docs/how-to/models/",
  notifications: "/docs/how-to/notifications/",
  people: "/docs/how-to/access/",
  playground: "/docs/how-to/trying/#in-the-playground",
  schedules: "/docs/how-to/triggers/",
  secrets: "/docs/how-to/secrets/",
  settings: "/docs/reference/settings/",
  templates: "/docs/cookbook/",
  tools: "/docs/how-to/tools/",
  usage: "/docs/how-to/observing/",
  webhooks: "/docs/how-to/triggers/",
  workflows: "/docs/how-to/web/",
};
const EDITOR = "/docs/how-to/web/#drawing-a-workflow";
const PUBLISH = "/docs/how-to/publishing/";
const EXECUTION = "/docs/how-to/life-of-an-execution/";

/** Return the address of the documentation for a page of the app; that of the app as a whole for other addresses. */
export function helpPage(path: string): string {
  const [, first = "", id, part] = path.split("/");
  if (first === "workflows" && part === "publish") return PUBLISH;
  if (first === "workflows" && id) return EDITOR;
  if (first === "executions" && id && id !== "compare") return EXECUTION;
  return DOCUMENTATION[first] ?? "/docs/how-to/web/";
}

const ROUTES = "/docs/reference/language/#choose-a-route";
const BRANCHES = "/docs/reference/language/#work-at-the-same-time";
const PERSON = "/docs/reference/language/#ask-a-person";
const MODEL = "/docs/reference/language/#let-a-model-work";
const DATA = "/docs/reference/language/#move-data";

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
  loop: "/docs/reference/language/#repeat",
  code: "/docs/how-to/code/",
  http: "/docs/how-to/http/",
  memory: "/docs/how-to/memory/",
  tool: "/docs/how-to/tools/",
};

/** Return the address of the documentation for a node type. */
export const helpForNode = (type: string): string => NODES[type] ?? "/docs/reference/language/#nodes";
