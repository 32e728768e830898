/** Tabbed panels beside the canvas. */
import {
  Code,
  FlaskConical,
  History,
  ListTree,
  type LucideIcon,
  MessageSquare,
  SlidersHorizontal,
  Sparkles,
  TriangleAlert,
} from "lucide-react";
import {
  type ComponentType,
  type CSSProperties,
  type KeyboardEvent,
  type LazyExoticComponent,
  lazy,
  Suspense,
} from "react";
import { useTranslation } from "react-i18next";
import { Loading } from "@/components/StatusMessage";
import { useEditor } from "../editorContext";
import { Properties } from "./Properties";
import { ResizeHandle, useWidth } from "./ResizeHandle";

interface Part {
  /** Its label is `panel.<name>`. */
  name: string;
  icon: LucideIcon;
  part: ComponentType | LazyExoticComponent<ComponentType>;
  /** Hidden from users without edit rights. */
  editorOnly?: true;
}

const PARTS: readonly Part[] = [
  { name: "properties", icon: SlidersHorizontal, part: Properties },
  { name: "outline", icon: ListTree, part: lazy(() => import("./OutlinePanel")) },
  { name: "try", icon: FlaskConical, part: lazy(() => import("@/features/trying/TryPanel")), editorOnly: true },
  { name: "problems", icon: TriangleAlert, part: lazy(() => import("./ProblemsPanel")) },
  { name: "versions", icon: History, part: lazy(() => import("./VersionsPanel")) },
  { name: "comments", icon: MessageSquare, part: lazy(() => import("@/features/comments/CommentsPanel")) },
  { name: "text", icon: Code, part: lazy(() => import("./TextPanel")) },
  {
    name: "assistant",
    icon: Sparkles,
    part: lazy(() => import("@/features/assistant/AssistantPanel")),
    editorOnly: true,
  },
];

/** Tab focuses the active tab; arrow keys move to the others. */
function moveBetweenTabs(event: KeyboardEvent<HTMLDivElement>): void {
  const tabs = [...event.currentTarget.querySelectorAll<HTMLElement>("[role=tab]")];
  const at = tabs.indexOf(event.target as HTMLElement);
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const next = tabs.at(to % tabs.length);
  next?.focus();
  next?.click();
}

export function SidePanel() {
  const { t } = useTranslation();
  const { checked, panel: name, show, mayChange } = useEditor();
  const Shown = PARTS.find((one) => one.name === name)?.part ?? Properties;
  const [width, widen] = useWidth();
  return (
    <>
      <ResizeHandle width={width} onChange={widen} />
      <aside
        style={{ "--width": `${width}px` } as CSSProperties}
        className="flex w-full min-h-0 flex-col border-line bg-surface md:w-(--width) md:shrink-0"
      >
        <div
          role="tablist"
          aria-label={t("panel.label")}
          onKeyDown={moveBetweenTabs}
          className="flex gap-0.5 overflow-x-auto border-b border-line p-1"
        >
          {PARTS.filter((one) => mayChange || !one.editorOnly).map((one) => (
            <button
              key={one.name}
              type="button"
              role="tab"
              aria-selected={one.name === name}
              tabIndex={one.name === name ? 0 : -1}
              title={t(`panel.${one.name}`)}
              onClick={() => show(one.name)}
              className="flex h-8 items-center gap-1.5 rounded-md px-1.5 text-ink-soft hover:bg-sunken aria-selected:bg-accent-soft aria-selected:text-accent"
            >
              <one.icon className="size-4" aria-hidden />
              <span className={one.name === name ? "" : "sr-only"}>{t(`panel.${one.name}`)}</span>
              {one.name === "problems" && checked.problems.length > 0 ? (
                <span className="rounded-full bg-waiting-soft px-1.5 text-xs font-medium text-waiting">
                  {checked.problems.length}
                </span>
              ) : null}
            </button>
          ))}
        </div>
        <div role="tabpanel" aria-label={t(`panel.${name}`)} className="min-h-0 flex-1 overflow-auto p-4">
          <Suspense fallback={<Loading />}>
            <Shown />
          </Suspense>
        </div>
      </aside>
    </>
  );
}
