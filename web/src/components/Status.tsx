import {
  Ban,
  Circle,
  CircleCheck,
  CircleDot,
  CirclePause,
  CircleStop,
  CircleX,
  Clock,
  Gauge,
  LoaderCircle,
} from "lucide-react";
import { useTranslation } from "react-i18next";

/** Icon and colour of a status, the same for executions, steps and nodes. The icon makes it readable without colour. */
const LOOKS = {
  pending: { icon: Circle, ink: "text-idle", soft: "bg-idle-soft" },
  running: { icon: LoaderCircle, ink: "text-running", soft: "bg-running-soft" },
  waiting: { icon: Clock, ink: "text-waiting", soft: "bg-waiting-soft" },
  paused: { icon: CirclePause, ink: "text-waiting", soft: "bg-waiting-soft" },
  stopped: { icon: CircleStop, ink: "text-waiting", soft: "bg-waiting-soft" },
  interrupted: { icon: Gauge, ink: "text-waiting", soft: "bg-waiting-soft" },
  completed: { icon: CircleCheck, ink: "text-done", soft: "bg-done-soft" },
  done: { icon: CircleCheck, ink: "text-done", soft: "bg-done-soft" },
  passed: { icon: CircleDot, ink: "text-done", soft: "bg-done-soft" },
  failed: { icon: CircleX, ink: "text-failed", soft: "bg-failed-soft" },
  cancelled: { icon: Ban, ink: "text-idle", soft: "bg-idle-soft" },
} as const;

export type Look = keyof typeof LOOKS;

export function StatusIcon({ status, className = "size-4" }: { status: Look; className?: string }) {
  const look = LOOKS[status];
  return (
    <look.icon
      aria-hidden
      className={`${className} shrink-0 ${look.ink} ${status === "running" ? "animate-spin" : ""}`}
    />
  );
}

export function Status({ status }: { status: Look }) {
  const { t } = useTranslation();
  const look = LOOKS[status];
  return (
    <span
      className={`inline-flex items-center gap-1.5 rounded-full px-2 py-0.5 text-xs font-medium ${look.soft} ${look.ink}`}
    >
      <StatusIcon status={status} className="size-3.5" />
      {t(`status.${status}`)}
    </span>
  );
}
