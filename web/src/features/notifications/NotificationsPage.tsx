import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { RotateCcw } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Chip } from "@/components/Chip";
import { PageSection } from "@/components/DescriptionList";
import { Listing, LoadMore } from "@/components/Listing";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { RelativeTime } from "@/components/RelativeTime";
import { ErrorMessage } from "@/components/StatusMessage";
import { ago } from "@/components/times";
import { Destinations } from "./Destinations";
import { type Notice, notifications, sendAgain } from "./notifications";

const STATES = ["pending", "sent", "dead"] as const;
const LOOKS = { pending: "accent", sent: "good", dead: "bad" } as const;

/** The addresses that receive notifications, and the state of each notification. */
export function NotificationsPage() {
  const { t } = useTranslation();
  const [state, setState] = useState<Notice["state"] | "">("");
  const known = useInfiniteQuery(notifications(state));
  const chooser = (
    <label className="flex items-center gap-2 text-ink-soft">
      {t("notifications.state")}
      <select
        value={state}
        onChange={(event) => setState(STATES.find((one) => one === event.target.value) ?? "")}
        className="h-8 rounded-md border border-line-strong bg-surface px-2 text-ink"
      >
        <option value="">{t("notifications.any")}</option>
        {STATES.map((one) => (
          <option key={one} value={one}>
            {t(`notifications.states.${one}`)}
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <Page title={t("notifications.title")} about={t("notifications.about")}>
      <QueryResult query={known}>
        {({ pages }) => (
          <>
            <Destinations found={pages[0]?.addresses ?? []} />
            <PageSection title={t("notifications.outbox")} actions={chooser}>
              <Outbox found={pages.flatMap((page) => page.notices)} />
              <LoadMore query={known} />
            </PageSection>
          </>
        )}
      </QueryResult>
    </Page>
  );
}

function Outbox({ found }: { found: readonly Notice[] }) {
  const { t, i18n } = useTranslation();
  const client = useQueryClient();
  const again = useMutation({
    mutationFn: (one: Notice) => sendAgain(one.id),
    onSettled: () => client.invalidateQueries({ queryKey: ["notifications"] }),
  });
  if (found.length === 0) return <p className="text-ink-soft">{t("notifications.empty")}</p>;
  return (
    <>
      {again.isError ? (
        <div className="mb-3">
          <ErrorMessage error={again.error} />
        </div>
      ) : null}
      <Listing
        name={t("notifications.outbox")}
        entries={found}
        keyOf={(one) => one.id}
        columns={[
          {
            name: t("notifications.what"),
            cell: (one) => (
              <>
                <Link to="/executions/$id" params={{ id: one.executionId }} className="hover:underline">
                  {one.event}
                </Link>
                <span className="block text-xs font-normal text-ink-faint">
                  {one.recipient ? t("notifications.toPerson", { to: one.to, recipient: one.recipient }) : one.to}
                </span>
                {one.reminder > 0 ? (
                  <span className="block text-xs font-normal text-ink-faint">
                    {t("notifications.reminder", { number: one.reminder })}
                  </span>
                ) : null}
              </>
            ),
          },
          {
            name: t("notifications.state"),
            cell: (one) => <Chip look={LOOKS[one.state]}>{t(`notifications.states.${one.state}`)}</Chip>,
          },
          {
            name: t("notifications.when"),
            cell: (one) => <RelativeTime at={one.at} />,
          },
          {
            name: t("notifications.attempts"),
            cell: (one) => (
              <>
                {one.attempts}
                {one.due ? (
                  <span className="block text-xs text-ink-faint">
                    {t("notifications.due", { when: ago(one.due, i18n.language) })}
                  </span>
                ) : null}
                {one.error ? <span className="block text-xs text-failed wrap-anywhere">{one.error}</span> : null}
              </>
            ),
          },
          {
            name: t("notifications.do"),
            isNarrow: true,
            cell: (one) =>
              one.state === "dead" ? (
                <Button
                  onClick={() => again.mutate(one)}
                  disabled={again.isPending}
                  aria-label={t("notifications.againNamed", { event: one.event, to: one.to })}
                >
                  <RotateCcw className="size-4" aria-hidden /> {t("notifications.again")}
                </Button>
              ) : null,
          },
        ]}
      />
    </>
  );
}
