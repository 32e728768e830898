import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, Outlet } from "@tanstack/react-router";
import { Inbox, Languages, ListChecks, LogOut, Moon, Sun, SunMoon, Workflow } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { ApiError } from "@/api/http";
import { inbox, logout, me } from "@/api/queries";
import type { Me } from "@/api/views";
import { LANGUAGES, speak } from "@/i18n";
import { paint, type Theme, theme } from "@/theme";
import { Login } from "./Login";

const THEMES: readonly Theme[] = ["system", "light", "dark"];

/** What stands around every page: where to go, language, theme. */
export function Shell() {
  const { t } = useTranslation();
  const known = useQuery(me());
  const isOut = known.error instanceof ApiError && known.error.status === 401;
  const open = useQuery(inbox(known.isSuccess));
  return (
    <div className="flex h-full flex-col">
      <a
        href="#page"
        className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:m-2 focus:rounded focus:bg-raised focus:p-2"
      >
        {t("shell.skip")}
      </a>
      <header className="flex h-12 shrink-0 items-center gap-1 border-b border-line bg-surface px-3">
        <Link to="/workflows" className="mr-3 flex items-center gap-2 font-semibold">
          <img src="/favicon.svg" alt="" className="size-6" />
          <span className="hidden sm:inline">Pointsman</span>
        </Link>
        <nav aria-label={t("shell.pages")} className="flex items-center gap-1">
          <Place to="/workflows" icon={<Workflow className="size-4" />} name={t("shell.workflows")} />
          <Place to="/executions" icon={<ListChecks className="size-4" />} name={t("shell.executions")} />
          <Place
            to="/inbox"
            icon={<Inbox className="size-4" />}
            name={t("shell.inbox")}
            count={open.data?.length ?? 0}
          />
        </nav>
        <div className="ml-auto flex items-center gap-1">
          {known.data ? <Who me={known.data} /> : null}
          <LanguageSwitch />
          <ThemeSwitch />
        </div>
      </header>
      <main id="page" className="min-h-0 flex-1 overflow-auto" tabIndex={-1}>
        {isOut ? <Login /> : <Outlet />}
      </main>
    </div>
  );
}

function Place(props: { to: "/workflows" | "/executions" | "/inbox"; icon: ReactNode; name: string; count?: number }) {
  return (
    <Link
      to={props.to}
      className="flex h-8 items-center gap-2 rounded-md px-2.5 text-ink-soft hover:bg-sunken hover:text-ink data-[status=active]:bg-accent-soft data-[status=active]:text-accent"
    >
      {props.icon}
      <span className="max-sm:sr-only">{props.name}</span>
      {props.count ? (
        <span className="rounded-full bg-waiting-soft px-1.5 text-xs font-medium text-waiting">{props.count}</span>
      ) : null}
    </Link>
  );
}

/** Who looks; and out again, where a key let them in. */
function Who({ me: one }: { me: Me }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const leave = useMutation({ mutationFn: logout, onSuccess: () => client.resetQueries() });
  return (
    <span className="flex items-center gap-1 text-xs text-ink-soft">
      <span className="max-w-32 truncate max-sm:hidden" title={[one.role, ...one.groups].join(", ")}>
        {one.name}
      </span>
      {one.entrance === "login" ? (
        <button
          type="button"
          onClick={() => leave.mutate()}
          className="flex size-8 items-center justify-center rounded-md hover:bg-sunken"
          aria-label={t("login.leave")}
          title={t("login.leave")}
        >
          <LogOut className="size-4" />
        </button>
      ) : null}
    </span>
  );
}

function LanguageSwitch() {
  const { t, i18n } = useTranslation();
  const next = LANGUAGES[(LANGUAGES.findIndex((one) => one === i18n.language) + 1) % LANGUAGES.length] ?? "en";
  return (
    <button
      type="button"
      onClick={() => speak(next)}
      className="flex h-8 items-center gap-1.5 rounded-md px-2 text-ink-soft hover:bg-sunken"
      aria-label={t("shell.language", { language: i18n.language.toUpperCase() })}
    >
      <Languages className="size-4" />
      <span className="text-xs uppercase">{i18n.language}</span>
    </button>
  );
}

function ThemeSwitch() {
  const { t } = useTranslation();
  const [shown, setShown] = useState(theme());
  const next = THEMES[(THEMES.indexOf(shown) + 1) % THEMES.length] ?? "system";
  const Icon = { system: SunMoon, light: Sun, dark: Moon }[shown];
  return (
    <button
      type="button"
      onClick={() => {
        paint(next);
        setShown(next);
      }}
      className="flex size-8 items-center justify-center rounded-md text-ink-soft hover:bg-sunken"
      aria-label={t("shell.theme", { theme: t(`theme.${shown}`) })}
      title={t("shell.theme", { theme: t(`theme.${shown}`) })}
    >
      <Icon className="size-4" />
    </button>
  );
}
