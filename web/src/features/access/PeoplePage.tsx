import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { LogOut } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Chip } from "@/components/Chip";
import { Confirm } from "@/components/Confirm";
import { PageSection } from "@/components/DescriptionList";
import { LargeListSearch, useSearch } from "@/components/LargeListSearch";
import { Listing, LoadMore } from "@/components/Listing";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { RelativeTime } from "@/components/RelativeTime";
import { EmptyMessage } from "@/components/StatusMessage";
import { browserOf, endLogin, endLogins, type Login, logins, type Person, people } from "./access";
import { Rights } from "./Rights";

/** The known people, their logins by browser, and the rights of each role. */
export function PeoplePage() {
  const { t } = useTranslation();
  const client = useQueryClient();
  const search = useSearch();
  const known = useInfiniteQuery(people(search.words));
  const [leaving, setLeaving] = useState<string | null>(null);
  const again = () => client.invalidateQueries({ queryKey: ["access"] });
  return (
    <Page
      title={t("people.title")}
      about={t("people.about")}
      actions={<LargeListSearch search={search} query={known} label={t("people.search")} />}
    >
      <QueryResult query={known}>
        {({ pages }) => {
          const all = pages.flatMap((page) => page.people);
          if (all.length > 0) return <PersonTable all={all} onLeave={setLeaving} />;
          if (search.words) return <EmptyMessage title={t("people.noMatch", { words: search.words })} />;
          return (
            <EmptyMessage isNew title={t("people.none")}>
              {t("people.noneHint")}
            </EmptyMessage>
          );
        }}
      </QueryResult>
      <LoadMore query={known} />
      <div className="mt-8">
        <PageSection title={t("people.logins")} about={t("people.loginsAbout")}>
          <Logins onEnd={(id) => void endLogin(id).finally(again)} />
        </PageSection>
        <PageSection title={t("people.rights")} about={t("people.rightsAbout")}>
          <Rights />
        </PageSection>
      </div>
      {leaving === null ? null : (
        <Confirm
          title={t("people.leaveNamed", { name: leaving })}
          about={t("people.leaveAbout")}
          confirmLabel={t("people.leave")}
          action={() => endLogins(leaving).then(again)}
          onClose={() => setLeaving(null)}
        />
      )}
    </Page>
  );
}

function PersonTable(props: { all: readonly Person[]; onLeave: (name: string) => void }) {
  const { t } = useTranslation();
  return (
    <Listing
      name={t("people.title")}
      entries={props.all}
      keyOf={(one) => one.name}
      columns={[
        { name: t("people.name"), cell: (one) => <bdi>{one.name}</bdi> },
        { name: t("people.role"), cell: (one) => <Chip>{t(`role.${one.role}`)}</Chip> },
        { name: t("people.groups"), cell: (one) => (one.groups.length ? <bdi>{one.groups.join(", ")}</bdi> : null) },
        { name: t("people.ways"), cell: (one) => one.ways.map((way) => t(`people.way.${way}`)).join(", ") },
        { name: t("people.seen"), cell: (one) => (one.seenAt === null ? null : <RelativeTime at={one.seenAt} />) },
        {
          name: t("people.leave"),
          isNarrow: true,
          cell: (one) =>
            one.logins === 0 ? null : (
              <Button onClick={() => props.onLeave(one.name)} aria-label={t("people.leaveThis", { name: one.name })}>
                <LogOut className="size-4" aria-hidden /> {t("people.leaveCount", { count: one.logins })}
              </Button>
            ),
        },
      ]}
    />
  );
}

function Logins({ onEnd }: { onEnd: (id: string) => void }) {
  const { t } = useTranslation();
  const search = useSearch();
  const known = useInfiniteQuery(logins(search.words));
  return (
    <div className="space-y-3">
      <LargeListSearch search={search} query={known} label={t("people.searchLogins")} />
      <QueryResult query={known}>
        {({ pages }) => {
          const all = pages.flatMap((page) => page.logins);
          if (all.length > 0) return <LoginTable all={all} onEnd={onEnd} />;
          return (
            <EmptyMessage title={search.words ? t("people.noLogin", { words: search.words }) : t("people.nobodyIn")} />
          );
        }}
      </QueryResult>
      <LoadMore query={known} />
    </div>
  );
}

function LoginTable(props: { all: readonly Login[]; onEnd: (id: string) => void }) {
  const { t } = useTranslation();
  return (
    <Listing
      name={t("people.logins")}
      entries={props.all}
      keyOf={(one) => one.id}
      columns={[
        { name: t("people.name"), cell: (one) => <bdi>{one.name}</bdi> },
        { name: t("people.browser"), cell: (one) => <span title={one.agent}>{browserOf(one.agent)}</span> },
        { name: t("people.began"), cell: (one) => <RelativeTime at={one.beganAt} /> },
        { name: t("people.ends"), cell: (one) => <RelativeTime at={one.expiresAt} /> },
        {
          name: t("people.end"),
          isNarrow: true,
          cell: (one) => (
            <Button
              onClick={() => props.onEnd(one.id)}
              aria-label={t("people.endThis", { name: one.name, browser: browserOf(one.agent) })}
            >
              {t("people.end")}
            </Button>
          ),
        },
      ]}
    />
  );
}
