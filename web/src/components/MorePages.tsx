/** Pages that are not asked for every day, behind one button. */
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
  KeyRound,
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
import { useMay } from "./useMay";

interface MorePlace {
  to: string;
  /** Its word is `shell.<name>`. */
  name: string;
  icon: LucideIcon;
  /** For whom it is there at all; without: for all. */
  least?: "admin";
}

/** What workflows are made of; what starts them, and tells of them; who may do what. A line stands between the groups. */
const PLACES: readonly (readonly MorePlace[])[] = [
  [
    { to: "/agents", name: "agents", icon: Bot },
    { to: "/tools", name: "tools", icon: Wrench },
    { to: "/models", name: "models", icon: Cpu },
    { to: "/memory", name: "memory", icon: Brain },
  ],
  [
    { to: "/schedules", name: "schedules", icon: CalendarClock },
    { to: "/webhooks", name: "webhooks", icon: Webhook },
    { to: "/notifications", name: "notifications", icon: BellRing, least: "admin" },
  ],
  [
    { to: "/usage", name: "usage", icon: ChartColumn },
    { to: "/people", name: "people", icon: Users, least: "admin" },
    { to: "/keys", name: "keys", icon: KeyRound, least: "admin" },
    { to: "/secrets", name: "secrets", icon: Lock, least: "admin" },
    { to: "/audit", name: "audit", icon: ScrollText, least: "admin" },
    { to: "/settings", name: "settings", icon: Settings, least: "admin" },
  ],
];

export function MorePages() {
  const { t } = useTranslation();
  const isAdmin = useMay("admin");
  const here = useRouterState({ select: (state) => state.location.pathname.split("/")[1] });
  const place = PLACES.flat().find((one) => one.to === `/${here}`);
  const Icon = place?.icon ?? Ellipsis;
  return (
    <DropdownMenu.Root>
      <DropdownMenu.Trigger
        title={t("shell.more")}
        className={`flex h-8 items-center gap-2 rounded-md px-2.5 max-sm:gap-0.5 max-sm:px-1.5 ${place ? "bg-accent-soft text-accent" : "text-ink-soft hover:bg-sunken hover:text-ink"}`}
      >
        <Icon className="size-4 shrink-0" aria-hidden />
        <span className="max-sm:sr-only">
          {place ? <span className="sr-only">{t("shell.more")}: </span> : null}
          {place ? t(`shell.${place.name}`) : t("shell.more")}
        </span>
        {place ? <ChevronDown className="size-3.5 shrink-0" aria-hidden /> : null}
      </DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align="start"
          className="z-40 max-h-(--radix-dropdown-menu-content-available-height) min-w-44 overflow-auto rounded-md border border-line bg-raised p-1 shadow-lg"
        >
          {PLACES.map((group, at) => (
            <Fragment key={group[0]?.name}>
              {at > 0 ? <DropdownMenu.Separator className="my-1 h-px bg-line" /> : null}
              {group
                .filter((place) => isAdmin || place.least === undefined)
                .map((place) => (
                  <DropdownMenu.Item key={place.name} asChild>
                    <Link
                      to={place.to}
                      className="flex h-8 items-center gap-2 rounded px-2.5 outline-none data-[highlighted]:bg-sunken data-[status=active]:text-accent"
                    >
                      <place.icon className="size-4 text-ink-faint" aria-hidden /> {t(`shell.${place.name}`)}
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
