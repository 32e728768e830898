/** A menu with the pages that are used less often. */
import { Link, useRouterState } from "@tanstack/react-router";
import {
  BellRing,
  Bot,
  Brain,
  CalendarClock,
  ChartColumn,
  ChevronDown,
  Cpu,
  Ellipsis,
  FlaskConical,
  Gauge,
  KeyRound,
  LayoutTemplate,
  Lock,
  type LucideIcon,
  ScrollText,
  Settings,
  Users,
  Webhook,
  Wrench,
} from "lucide-react";
import { DropdownMenu } from "radix-ui";
import { Fragment } from "react";
import { useTranslation } from "react-i18next";
import { useHasRole } from "./useHasRole";

interface MenuEntry {
  to: string;
  /** The key of its label is `shell.<name>`. */
  name: string;
  icon: LucideIcon;
  /** The minimum role that sees the entry; absent: all roles. */
  minimumRole?: "admin";
}

/** Three groups with separators: building blocks of workflows, triggers and notifications, administration. */
const MENU: readonly (readonly MenuEntry[])[] = [
  [
    { to: "/templates", name: "templates", icon: LayoutTemplate },
    { to: "/agents", name: "agents", icon: Bot },
    { to: "/tools", name: "tools", icon: Wrench },
    { to: "/models", name: "models", icon: Cpu },
    { to: "/memory", name: "memory", icon: Brain },
    { to: "/playground", name: "playground", icon: FlaskConical },
    { to: "/evaluations", name: "evaluations", icon: Gauge },
  ],
  [
    { to: "/schedules", name: "schedules", icon: CalendarClock },
    { to: "/webhooks", name: "webhooks", icon: Webhook },
    { to: "/notifications", name: "notifications", icon: BellRing, minimumRole: "admin" },
  ],
  [
    { to: "/usage", name: "usage", icon: ChartColumn },
    { to: "/people", name: "people", icon: Users, minimumRole: "admin" },
    { to: "/keys", name: "keys", icon: KeyRound, minimumRole: "admin" },
    { to: "/secrets", name: "secrets", icon: Lock, minimumRole: "admin" },
    { to: "/audit", name: "audit", icon: ScrollText, minimumRole: "admin" },
    { to: "/settings", name: "settings", icon: Settings, minimumRole: "admin" },
  ],
];

export function MorePages() {
  const { t } = useTranslation();
  const isAdmin = useHasRole("admin");
  const here = useRouterState({ select: (state) => state.location.pathname.split("/")[1] });
  const entry = MENU.flat().find((one) => one.to === `/${here}`);
  const Icon = entry?.icon ?? Ellipsis;
  return (
    <DropdownMenu.Root>
      <DropdownMenu.Trigger
        title={t("shell.more")}
        className={`flex h-8 items-center gap-2 rounded-md px-2.5 max-sm:gap-0.5 max-sm:px-1.5 ${entry ? "bg-accent-soft text-accent" : "text-ink-soft hover:bg-sunken hover:text-ink"}`}
      >
        <Icon className="size-4 shrink-0" aria-hidden />
        <span className="max-sm:sr-only">
          {entry ? <span className="sr-only">{t("shell.more")}: </span> : null}
          {entry ? t(`shell.${entry.name}`) : t("shell.more")}
        </span>
        {entry ? <ChevronDown className="size-3.5 shrink-0" aria-hidden /> : null}
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align="start"
          className="z-40 max-h-(--radix-dropdown-menu-content-available-height) min-w-44 overflow-auto rounded-md border border-line bg-raised p-1 shadow-lg"
        >
          {MENU.map((group, at) => (
            <Fragment key={group[0]?.name}>
              {at > 0 ? <DropdownMenu.Separator className="my-1 h-px bg-line" /> : null}
              {group
                .filter((entry) => isAdmin || entry.minimumRole === undefined)
                .map((entry) => (
                  <DropdownMenu.Item key={entry.name} asChild>
                    <Link
                      to={entry.to}
                      className="flex h-8 items-center gap-2 rounded px-2.5 outline-none data-[highlighted]:bg-sunken data-[status=active]:text-accent"
                    >
                      <entry.icon className="size-4 text-ink-faint" aria-hidden /> {t(`shell.${entry.name}`)}
                    </Link>
                  </DropdownMenu.Item>
                ))}
            </Fragment>
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}
