import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { NotFound } from "./components/NotFound";
import { Shell } from "./components/Shell";
import { PageFailed } from "./components/Told";

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound, errorComponent: PageFailed });

const start = createRoute({
  getParentRoute: () => root,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/workflows" });
  },
});
const workflows = createRoute({
  getParentRoute: () => root,
  path: "/workflows",
  component: lazyRouteComponent(() => import("./features/workflows/WorkflowsPage"), "WorkflowsPage"),
});
const workflow = createRoute({
  getParentRoute: () => root,
  path: "/workflows/$id",
  component: lazyRouteComponent(() => import("./features/editor/EditorPage"), "EditorPage"),
});
const executions = createRoute({
  getParentRoute: () => root,
  path: "/executions",
  validateSearch: (search: Record<string, unknown>): { workflow?: string; status?: string } => ({
    ...(typeof search.workflow === "string" ? { workflow: search.workflow } : {}),
    ...(typeof search.status === "string" ? { status: search.status } : {}),
  }),
  component: lazyRouteComponent(() => import("./features/execution/ExecutionsPage"), "ExecutionsPage"),
});
const execution = createRoute({
  getParentRoute: () => root,
  path: "/executions/$id",
  component: lazyRouteComponent(() => import("./features/execution/ExecutionPage"), "ExecutionPage"),
});
const inbox = createRoute({
  getParentRoute: () => root,
  path: "/inbox",
  component: lazyRouteComponent(() => import("./features/inbox/InboxPage"), "InboxPage"),
});

const tree = root.addChildren([start, workflows, workflow, executions, execution, inbox]);

export function makeRouter() {
  return createRouter({ routeTree: tree, defaultPreload: "intent", scrollRestoration: true });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof makeRouter>;
  }
}
