import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, Outlet, useLocation } from "@tanstack/react-router";
import { Inbox, Languages, ListChecks, LogOut, MessageCircle, Moon, Sun, SunMoon, Workflow } from "lucide-react";
import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { INBOX_MAX, inbox, logout, me, mentions } from "@/api/queries";
import type { Me } from "@/api/views";
import { useServerUpgraded } from "@/appVersion";
import { LANGUAGE_NAMES, LANGUAGES, type Language, switchLanguage } from "@/i18n";
import { useServerUnreachable } from "@/loadPart";
import { useBoard } from "@/stream/useBoard";
import { applyTheme, type Theme, theme } from "@/theme";
import { Button } from "./Button";
import { useFirstKey } from "./firstKeyState";
import { HelpMenu } from "./HelpMenu";
import { IconButton } from "./IconButton";
import { Login } from "./Login";
import { MorePages } from "./MorePages";
import { pageFrame } from "./pageFrames";
import { ScriptedServer } from "./Scripted";
import { useIsLoggedOut } from "./useIsLoggedOut";

const THEMES: readonly Theme[] = ["system", "light", "dark"];

/** The frame of every page, see `pageFrame`. */
export function Shell() {
  const frame = useLocation({ select: (at) => pageFrame(at.pathname) });
  if (frame === "none") return <Outlet />;
  return frame === "link" ? <LinkFrame /> : <AppFrame />;
}

function LinkFrame() {
  return (
    <div className="flex h-full flex-col">
      <header className="flex h-12 shrink-0 items-center gap-2 border-b border-line bg-surface px-3 font-semibold">
        <img src="/favicon.svg" alt="" className="size-6" />
        Pointsman
        <div className="ml-auto flex items-center gap-1 font-normal">
          <LanguageSwitch />
          <ThemeSwitch />
        </div>
      </header>
      <main id="page" className="min-h-0 flex-1 overflow-auto" tabIndex={-1}>
        <Outlet />
      </main>
    </div>
  );
}

/** Navigation, language, theme. */
function AppFrame() {
  const { t } = useTranslation();
  const known = useQuery(me());
  const isOut = useIsLoggedOut();
  const isCreatingFirstKey = useFirstKey((now) => now.isCreatingFirstKey);
  const open = useQuery(inbox(known.isSuccess));
  const mentioned = useQuery(mentions(known.isSuccess));
  useBoard(known.isSuccess ? known.data.name : isOut ? "" : undefined);
  return (
    <div className="flex h-full flex-col">
      <a
        href="#page"
        className="sr-only focus:not-sr-only focus:absolute focus:z-50 focus:m-2 focus:rounded focus:bg-raised focus:p-2"
      >
        {t("shell.skip")}
      </a>
      <header className="flex h-12 shrink-0 items-center gap-1 border-b border-line bg-surface px-3 max-sm:px-2">
        <Link to="/workflows" className="mr-1 flex h-8 shrink-0 items-center gap-2 font-semibold sm:mr-3">
          <img src="/favicon.svg" alt="" className="size-6" />
          <span className="max-sm:sr-only">Pointsman</span>
        </Link>
        <nav aria-label={t("shell.pages")} className="flex items-center gap-1">
          <NavigationLink to="/workflows" icon={<Workflow className="size-4" />} name={t("shell.workflows")} />
          <NavigationLink to="/executions" icon={<ListChecks className="size-4" />} name={t("shell.executions")} />
          <NavigationLink
            to="/inbox"
            icon={<Inbox className="size-4" />}
            name={t("shell.inbox")}
            count={inboxCount(open.data?.length ?? 0)}
            mentions={mentioned.data?.unread ?? 0}
          />
          <NavigationLink to="/chat" icon={<MessageCircle className="size-4" />} name={t("shell.chat")} />
          <MorePages />
        </nav>
        <div className="ml-auto flex items-center gap-1">
          {known.data && !isOut ? <CurrentUser me={known.data} /> : null}
          <HelpMenu />
          <LanguageSwitch />
          <ThemeSwitch />
        </div>
      </header>
      <ServerAwayMessage />
      <ServerUpgradedMessage />
      <ScriptedServer />
      <main id="page" className="min-h-0 flex-1 overflow-auto" tabIndex={-1}>
        {isOut && !isCreatingFirstKey ? <Login /> : <Outlet />}
      </main>
    </div>
  );
}

/** Shown while the next page cannot be loaded; the previous page stays visible. */
function ServerAwayMessage() {
  const { t } = useTranslation();
  const { isUnreachable } = useServerUnreachable();
  return (
    <p role="status" className="bg-waiting-soft px-4 py-2 text-waiting empty:hidden">
      {isUnreachable ? t("execution.disconnected") : null}
    </p>
  );
}

/** Shown when the server has a newer app. The browser keeps unsaved changes of workflows over a reload. */
function ServerUpgradedMessage() {
  const { t } = useTranslation();
  const { isUpgraded } = useServerUpgraded();
  return (
    <div role="status" className="flex flex-wrap items-center gap-3 bg-accent-soft px-4 py-2 text-accent empty:hidden">
      {isUpgraded ? (
        <>
          {t("shell.upgraded")}
          <Button onClick={() => location.reload()}>{t("shell.reload")}</Button>
        </>
      ) : null}
    </div>
  );
}

/** The inbox loads at most INBOX_MAX entries, so a larger count is shown as "INBOX_MAX+". */
const inboxCount = (found: number) => (found === INBOX_MAX ? `${found}+` : found === 0 ? "" : String(found));

function NavigationLink(props: {
  to: "/workflows" | "/executions" | "/inbox" | "/chat";
  icon: ReactNode;
  name: string;
  count?: string;
  mentions?: number;
}) {
  const { t } = useTranslation();
  return (
    <Link
      to={props.to}
      className="flex h-8 items-center gap-2 rounded-md px-2.5 text-ink-soft hover:bg-sunken hover:text-ink max-sm:gap-1 max-sm:px-1.5 data-[status=active]:bg-accent-soft data-[status=active]:text-accent"
    >
      {props.icon}
      <span className="max-sm:sr-only">{props.name}</span>
      {props.count ? (
        <span className="rounded-full bg-waiting-soft px-1.5 text-xs font-medium text-waiting">{props.count}</span>
      ) : null}
      {props.mentions ? (
        <span
          title={t("mentions.unread", { count: props.mentions })}
          className="rounded-full bg-accent-soft px-1.5 text-xs font-medium text-accent"
        >
          <span aria-hidden>@{props.mentions}</span>
          <span className="sr-only">{t("mentions.unread", { count: props.mentions })}</span>
        </span>
      ) : null}
    </Link>
  );
}

/** The current user, with a logout button after a login with a key. */
function CurrentUser({ me: one }: { me: Me }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const leave = useMutation({ mutationFn: logout, onSuccess: () => client.resetQueries() });
  return (
    <span className="flex items-center gap-1 text-xs text-ink-soft">
      <span className="max-w-32 truncate max-sm:hidden" title={[one.role, ...one.groups].join(", ")}>
        {one.name}
      </span>
      {one.entrance === "login" ? (
        <IconButton icon={LogOut} name={t("login.leave")} onClick={() => leave.mutate()} />
      ) : null}
    </span>
  );
}

function LanguageSwitch() {
  const { t, i18n } = useTranslation();
  const next = LANGUAGES[(LANGUAGES.indexOf(i18n.language as Language) + 1) % LANGUAGES.length] ?? "en";
  // The accessible name starts with the visible text, so that speech input can name it.
  const name = t("shell.language", { language: LANGUAGE_NAMES[i18n.language as Language], code: i18n.language });
  return (
    <button
      type="button"
      onClick={() => switchLanguage(next).catch(() => undefined)}
      className="flex h-8 items-center gap-1.5 rounded-md px-2 text-ink-soft hover:bg-sunken"
      aria-label={name}
      title={name}
    >
      <Languages className="size-4 max-sm:hidden" aria-hidden />
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
    <IconButton
      icon={Icon}
      name={t("shell.theme", { theme: t(`theme.${shown}`) })}
      onClick={() => {
        applyTheme(next);
        setShown(next);
      }}
    />
  );
}
