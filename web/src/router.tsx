import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  type RouterHistory,
  redirect,
} from "@tanstack/react-router";
import { daysOf, listOf, oneOf, parseSearch, searchTextOf, textsOf } from "./address";
import { NotFound } from "./components/NotFound";
import { PageFailed } from "./components/PageFailed";
import { Shell } from "./components/Shell";
import type { AuditSearch } from "./features/audit/AuditPage";
import type { ExecutionSearch } from "./features/execution/filters";
import { VIEWS } from "./features/execution/views";
import { LISTS } from "./features/inbox/lists";
import type { TemplateSearch } from "./features/templates/templates";
import type { UsageSearch } from "./features/usage/UsagePage";
import { DIMENSIONS, MEASURES, RANGES } from "./features/usage/usage";
import { type CatalogueSearch, SORTS } from "./features/workflows/catalogue";
import { loadWords } from "./i18n";
import { loadPart } from "./loadPart";

/** `words`: the feature whose texts load with the page. */
const page = <T extends Record<string, unknown>, K extends keyof T>(read: () => Promise<T>, name: K, words?: string) =>
  lazyRouteComponent<T, K>(
    () => loadPart(async () => (await Promise.all([read(), words === undefined ? null : loadWords(words)]))[0]),
    name,
  );

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound, errorComponent: Broken });

const start = createRoute({
  getParentRoute: () => root,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/workflows" });
  },
});
const login = createRoute({
  getParentRoute: () => root,
  path: "/login",
  component: page(() => import("./components/LoginPage"), "LoginPage"),
});
const workflows = createRoute({
  getParentRoute: () => root,
  path: "/workflows",
  validateSearch: parseSearch(
    (search): CatalogueSearch => ({
      ...searchTextOf(search),
      ...listOf("tag", search.tag),
      ...oneOf("sort", search.sort, SORTS),
      ...textsOf(search, "folder"),
    }),
  ),
  component: page(() => import("./features/workflows/WorkflowsPage"), "WorkflowsPage"),
});
const workflow = createRoute({
  getParentRoute: () => root,
  path: "/workflows/$id",
  validateSearch: parseSearch((search) => oneOf("panel", search.panel, ["comments"] as const)),
  component: page(() => import("./features/editor/EditorPage"), "EditorPage"),
});
const executions = createRoute({
  getParentRoute: () => root,
  path: "/executions",
  validateSearch: parseSearch(
    (search): ExecutionSearch => ({
      ...searchTextOf(search),
      ...textsOf(search, "workflow"),
      ...daysOf(search, "since", "until"),
      ...listOf("status", search.status),
      ...oneOf("order", search.order, ["asc"] as const),
      ...(search.trials === true ? { trials: true as const } : {}),
    }),
  ),
  component: page(() => import("./features/execution/ExecutionsPage"), "ExecutionsPage"),
});
const execution = createRoute({
  getParentRoute: () => root,
  path: "/executions/$id",
  validateSearch: parseSearch((search) => oneOf("view", search.view, VIEWS)),
  component: page(() => import("./features/execution/ExecutionPage"), "ExecutionPage"),
});
const compare = createRoute({
  getParentRoute: () => root,
  path: "/executions/compare",
  validateSearch: parseSearch((search): { a?: string; b?: string } => ({
    ...textsOf(search, "a", "b"),
  })),
  component: page(() => import("./features/execution/ComparePage"), "ComparePage"),
});
const answer = createRoute({
  getParentRoute: () => root,
  path: "/answer",
  component: page(() => import("./features/inbox/AnswerPage"), "AnswerPage"),
});
const inbox = createRoute({
  getParentRoute: () => root,
  path: "/inbox",
  validateSearch: parseSearch((search) => oneOf("list", search.list, LISTS)),
  component: page(() => import("./features/inbox/InboxPage"), "InboxPage"),
});
const agents = createRoute({
  getParentRoute: () => root,
  path: "/agents",
  component: page(() => import("./features/agents/AgentsPage"), "AgentsPage"),
});
const agent = createRoute({
  getParentRoute: () => root,
  path: "/agents/$name",
  component: page(() => import("./features/agents/AgentPage"), "AgentPage"),
});
const templates = createRoute({
  getParentRoute: () => root,
  path: "/templates",
  validateSearch: parseSearch((search): TemplateSearch => ({ ...searchTextOf(search), ...textsOf(search, "tag") })),
  component: page(() => import("./features/templates/TemplatesPage"), "TemplatesPage"),
});
const template = createRoute({
  getParentRoute: () => root,
  path: "/templates/$id",
  component: page(() => import("./features/templates/TemplatePage"), "TemplatePage"),
});
const evaluations = createRoute({
  getParentRoute: () => root,
  path: "/evaluations",
  component: page(() => import("./features/evaluations/EvaluationsPage"), "EvaluationsPage", "evaluations"),
});
const evaluationsOf = createRoute({
  getParentRoute: () => root,
  path: "/evaluations/$name",
  component: page(() => import("./features/evaluations/DatasetPage"), "DatasetPage", "evaluations"),
});
const evaluation = createRoute({
  getParentRoute: () => root,
  path: "/evaluations/$name/$run",
  component: page(() => import("./features/evaluations/RunPage"), "RunPage", "evaluations"),
});
const playground = createRoute({
  getParentRoute: () => root,
  path: "/playground",
  component: page(() => import("./features/playground/PlaygroundPage"), "PlaygroundPage"),
});
const tools = createRoute({
  getParentRoute: () => root,
  path: "/tools",
  component: page(() => import("./features/tools/ToolsPage"), "ToolsPage"),
});
const tool = createRoute({
  getParentRoute: () => root,
  path: "/tools/$name",
  component: page(() => import("./features/tools/ToolPage"), "ToolPage"),
});
const models = createRoute({
  getParentRoute: () => root,
  path: "/models",
  component: page(() => import("./features/models/ModelsPage"), "ModelsPage"),
});
const memory = createRoute({
  getParentRoute: () => root,
  path: "/memory",
  component: page(() => import("./features/memory/MemoryPage"), "MemoryPage", "memory"),
});
const memoryOf = createRoute({
  getParentRoute: () => root,
  path: "/memory/$scope/$owner",
  component: page(() => import("./features/memory/OwnerPage"), "OwnerPage", "memory"),
});
const schedules = createRoute({
  getParentRoute: () => root,
  path: "/schedules",
  component: page(() => import("./features/schedules/SchedulesPage"), "SchedulesPage"),
});
const schedule = createRoute({
  getParentRoute: () => root,
  path: "/schedules/$id",
  component: page(() => import("./features/schedules/SchedulePage"), "SchedulePage"),
});
const webhooks = createRoute({
  getParentRoute: () => root,
  path: "/webhooks",
  component: page(() => import("./features/webhooks/WebhooksPage"), "WebhooksPage", "webhooks"),
});
const notifications = createRoute({
  getParentRoute: () => root,
  path: "/notifications",
  component: page(() => import("./features/notifications/NotificationsPage"), "NotificationsPage", "notifications"),
});

const publishing = createRoute({
  getParentRoute: () => root,
  path: "/workflows/$id/publish",
  component: page(() => import("./features/publish/PublishPage"), "PublishPage"),
});
const publishedForm = createRoute({
  getParentRoute: () => root,
  path: "/form/$token",
  component: page(() => import("./features/publish/FormPage"), "FormPage"),
});
const framedForm = createRoute({
  getParentRoute: () => root,
  path: "/embed/$token",
  component: page(() => import("./features/publish/FormPage"), "FormPage"),
});
const publishedChat = createRoute({
  getParentRoute: () => root,
  path: "/talk/$token",
  component: page(() => import("./features/publish/TalkPage"), "TalkPage"),
});
const framedChat = createRoute({
  getParentRoute: () => root,
  path: "/embed/chat/$token",
  component: page(() => import("./features/publish/TalkPage"), "TalkPage"),
});
const connected = createRoute({
  getParentRoute: () => root,
  path: "/connected/$name",
  component: page(() => import("./features/access/ConnectedPage"), "ConnectedPage"),
});
const keys = createRoute({
  getParentRoute: () => root,
  path: "/keys",
  component: page(() => import("./features/access/KeysPage"), "KeysPage"),
});
const people = createRoute({
  getParentRoute: () => root,
  path: "/people",
  component: page(() => import("./features/access/PeoplePage"), "PeoplePage"),
});
const secrets = createRoute({
  getParentRoute: () => root,
  path: "/secrets",
  component: page(() => import("./features/access/SecretsPage"), "SecretsPage"),
});
const settings = createRoute({
  getParentRoute: () => root,
  path: "/settings",
  component: page(() => import("./features/settings/SettingsPage"), "SettingsPage", "settings"),
});
const audit = createRoute({
  getParentRoute: () => root,
  path: "/audit",
  validateSearch: parseSearch(
    (search): AuditSearch => ({
      ...textsOf(search, "who", "what"),
      ...daysOf(search, "since", "until"),
    }),
  ),
  component: page(() => import("./features/audit/AuditPage"), "AuditPage", "audit"),
});
const usage = createRoute({
  getParentRoute: () => root,
  path: "/usage",
  validateSearch: parseSearch(
    (search): UsageSearch => ({
      ...oneOf("by", search.by, DIMENSIONS),
      ...oneOf("show", search.show, MEASURES),
      ...oneOf("range", String(search.range), RANGES),
      ...daysOf(search, "since", "until"),
      ...listOf("of", search.of),
    }),
  ),
  component: page(() => import("./features/usage/UsagePage"), "UsagePage", "usage"),
});

const chatPage = page(() => import("./features/chat/ChatPage"), "ChatPage");
const chat = createRoute({ getParentRoute: () => root, path: "/chat", component: chatPage });
const chatWith = createRoute({ getParentRoute: () => root, path: "/chat/$workflow", component: chatPage });
const chatIn = createRoute({ getParentRoute: () => root, path: "/chat/$workflow/$session", component: chatPage });

const tree = root.addChildren([
  keys,
  people,
  publishing,
  publishedForm,
  framedForm,
  publishedChat,
  framedChat,
  connected,
  secrets,
  settings,
  audit,
  usage,
  chat,
  chatWith,
  chatIn,
  start,
  login,
  answer,
  workflows,
  workflow,
  executions,
  execution,
  compare,
  inbox,
  templates,
  template,
  evaluations,
  evaluationsOf,
  evaluation,
  playground,
  tools,
  tool,
  models,
  memory,
  memoryOf,
  schedules,
  schedule,
  webhooks,
  notifications,
  agents,
  agent,
]);

function Broken({ error, reset }: { error: unknown; reset: () => void }) {
  return <PageFailed error={error} onRetry={reset} />;
}

/** An error on one page keeps the menu around it. `history`: the browser's if absent. */
export function makeRouter(history?: RouterHistory) {
  return createRouter({
    routeTree: tree,
    ...(history ? { history } : {}),
    defaultPreload: "intent",
    defaultErrorComponent: Broken,
    scrollRestoration: true,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
