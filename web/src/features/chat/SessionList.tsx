import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import { Ellipsis, MessageSquarePlus, Pencil, Trash2 } from "lucide-react";
import { DropdownMenu } from "radix-ui";
import { useDeferredValue, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Confirm } from "@/components/Confirm";
import { Dialog } from "@/components/Dialog";
import { DialogActions } from "@/components/DialogActions";
import { iconLook } from "@/components/IconButton";
import { QueryResult } from "@/components/QueryResult";
import { SearchBox } from "@/components/SearchBox";
import { StatusIcon } from "@/components/Status";
import { ErrorMessage } from "@/components/StatusMessage";
import { ago } from "@/components/times";
import { useWorkflowName } from "@/components/useWorkflowName";
import { removeSession, renameSession, type Session, sessions } from "./sessions";

const SHOWN: ReadonlySet<Session["status"]> = new Set([
  "running",
  "stopped",
  "waiting",
  "paused",
  "interrupted",
  "failed",
]);

/** The list of conversations: search, open, rename, delete. */
export function SessionList({ session }: { session: string | null }) {
  const { t } = useTranslation();
  const [words, setWords] = useState("");
  const found = useInfiniteQuery(sessions(useDeferredValue(words.trim())));
  return (
    <nav aria-label={t("chat.talks")} className="flex min-h-0 flex-1 flex-col gap-2 p-3">
      <Link
        to="/chat"
        className="flex h-8 shrink-0 items-center justify-center gap-1.5 rounded-md border border-line-strong bg-surface font-medium hover:bg-sunken"
      >
        <MessageSquarePlus className="size-4" aria-hidden /> {t("chat.fresh")}
      </Link>
      <div className="[&_input]:w-full">
        <SearchBox value={words} onChange={setWords} label={t("chat.search")} />
      </div>
      <div className="min-h-0 flex-1 overflow-y-auto">
        <QueryResult query={found}>
          {({ pages }) => {
            const all = pages.flatMap((page) => page.sessions);
            return (
              <>
                {all.length === 0 ? (
                  <p className="p-2 text-ink-soft">{t(words ? "chat.noMatch" : "chat.none")}</p>
                ) : null}
                <ul className="space-y-0.5">
                  {all.map((one) => (
                    <Row key={one.sessionId} session={one} isShown={one.sessionId === session} />
                  ))}
                </ul>
              </>
            );
          }}
        </QueryResult>
        {found.hasNextPage ? (
          <Button kind="quiet" className="w-full justify-center" onClick={() => void found.fetchNextPage()}>
            {t("chat.more")}
          </Button>
        ) : null}
      </div>
    </nav>
  );
}

function Row({ session, isShown }: { session: Session; isShown: boolean }) {
  const workflowName = useWorkflowName();
  const { t, i18n } = useTranslation();
  const [doing, setDoing] = useState<"rename" | "delete" | null>(null);
  const client = useQueryClient();
  const navigate = useNavigate();
  const title = session.title || t("chat.untitled");
  const forget = async () => {
    await removeSession(session.sessionId);
    await client.invalidateQueries({ queryKey: ["executions"] });
    if (isShown) await navigate({ to: "/chat" });
  };
  return (
    <li className="group flex items-center rounded-md hover:bg-sunken has-[[aria-current=page]]:bg-accent-soft">
      <Link
        to="/chat/$workflow/$session"
        params={{ workflow: session.workflowId, session: session.sessionId }}
        aria-current={isShown ? "page" : undefined}
        className="min-w-0 flex-1 px-2.5 py-1.5"
      >
        <span className="flex items-center gap-1.5">
          <bdi className="min-w-0 flex-1 truncate">{title}</bdi>
          {SHOWN.has(session.status) ? <StatusIcon status={session.status} className="size-3.5" /> : null}
          {SHOWN.has(session.status) ? <span className="sr-only">{t(`status.${session.status}`)}</span> : null}
        </span>
        <span className="block truncate text-xs text-ink-faint">
          <bdi>{workflowName(session.workflowId)}</bdi> · {ago(session.updatedAt, i18n.language)}
        </span>
      </Link>
      <DropdownMenu.Root>
        <DropdownMenu.Trigger
          aria-label={t("chat.about", { title })}
          title={t("chat.about", { title })}
          className={`${iconLook()} mr-1`}
        >
          <Ellipsis className="size-4" aria-hidden />
        </DropdownMenu.Trigger>
        <DropdownMenu.Portal>
          <DropdownMenu.Content align="end" className="z-40 rounded-md border border-line bg-raised p-1 shadow-lg">
            <Item icon={<Pencil className="size-4" aria-hidden />} onSelect={() => setDoing("rename")}>
              {t("chat.rename")}
            </Item>
            <Item icon={<Trash2 className="size-4" aria-hidden />} onSelect={() => setDoing("delete")}>
              {t("chat.delete")}
            </Item>
          </DropdownMenu.Content>
        </DropdownMenu.Portal>
      </DropdownMenu.Root>
      {doing === "rename" ? <Rename session={session} onClose={() => setDoing(null)} /> : null}
      {doing === "delete" ? (
        <Confirm
          title={t("chat.deleteTitle", { title })}
          about={t("chat.deleteAbout")}
          confirmLabel={t("chat.delete")}
          action={forget}
          onClose={() => setDoing(null)}
        />
      ) : null}
    </li>
  );
}

function Item(props: { icon: React.ReactNode; onSelect: () => void; children: React.ReactNode }) {
  return (
    <DropdownMenu.Item
      onSelect={props.onSelect}
      className="flex h-8 cursor-pointer items-center gap-2 rounded px-2.5 outline-none data-[highlighted]:bg-sunken"
    >
      {props.icon} {props.children}
    </DropdownMenu.Item>
  );
}

function Rename({ session, onClose }: { session: Session; onClose: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [title, setTitle] = useState(session.title);
  const [why, setWhy] = useState<unknown>(null);
  const save = async () => {
    try {
      await renameSession(session, title);
      await client.invalidateQueries({ queryKey: ["executions", "talks"] });
      onClose();
    } catch (failed) {
      setWhy(failed);
    }
  };
  return (
    <Dialog open onClose={onClose} title={t("chat.rename")}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <label className="block font-medium">
          {t("chat.title")}
          <input
            value={title}
            maxLength={200}
            onChange={(event) => setTitle(event.target.value)}
            className="mt-1 h-9 w-full rounded-md border border-line-strong bg-surface px-2 font-normal"
          />
        </label>
        {why ? (
          <div className="mt-3">
            <ErrorMessage error={why} />
          </div>
        ) : null}
        <DialogActions onClose={onClose}>
          <Button kind="primary" type="submit">
            {t("chat.save")}
          </Button>
        </DialogActions>
      </form>
    </Dialog>
  );
}
