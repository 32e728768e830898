import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { now } from "@/clock";
import { Button } from "@/components/Button";
import { Chip } from "@/components/Chip";
import { Confirm } from "@/components/Confirm";
import { LargeListSearch, useSearch } from "@/components/LargeListSearch";
import { Listing, LoadMore } from "@/components/Listing";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { RelativeTime } from "@/components/RelativeTime";
import { EmptyMessage } from "@/components/StatusMessage";
import { type Key, keys, revokeKey } from "./access";
import { KeyDialog } from "./KeyDialog";

/** API keys: create, show once, revoke. */
export function KeysPage() {
  const { t } = useTranslation();
  const client = useQueryClient();
  const search = useSearch();
  const known = useInfiniteQuery(keys(search.words));
  const isFirst = search.words === "" && known.data?.pages[0]?.keys.length === 0;
  const [making, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<string | null>(null);
  const again = async () => {
    await client.invalidateQueries({ queryKey: ["access"] });
    await client.invalidateQueries({ queryKey: ["me"] });
  };
  return (
    <Page
      title={t("keys.title")}
      about={t("keys.about")}
      actions={
        <>
          <LargeListSearch search={search} query={known} label={t("keys.search")} />
          <Button kind="primary" onClick={() => setMaking(true)}>
            <Plus className="size-4" aria-hidden /> {t("keys.make")}
          </Button>
        </>
      }
    >
      <QueryResult query={known}>
        {({ pages }) => {
          const all = pages.flatMap((page) => page.keys);
          if (all.length > 0) return <KeyTable all={all} onRevoke={setRevoking} />;
          if (search.words) return <EmptyMessage title={t("keys.noMatch", { words: search.words })} />;
          return (
            <EmptyMessage isNew title={t("keys.none")}>
              {t("keys.noneHint")}
            </EmptyMessage>
          );
        }}
      </QueryResult>
      <LoadMore query={known} />
      {making ? <KeyDialog isFirst={isFirst} onMade={() => void again()} onClose={() => setMaking(false)} /> : null}
      {revoking === null ? null : (
        <Confirm
          title={t("keys.revokeNamed", { name: revoking })}
          about={t("keys.revokeAbout")}
          confirmLabel={t("keys.revoke")}
          action={() => revokeKey(revoking).then(again)}
          onClose={() => setRevoking(null)}
        />
      )}
    </Page>
  );
}

function KeyTable(props: { all: readonly Key[]; onRevoke: (name: string) => void }) {
  const { t } = useTranslation();
  return (
    <Listing
      name={t("keys.title")}
      entries={props.all}
      keyOf={(one) => one.name}
      columns={[
        { name: t("keys.name"), cell: (one) => <bdi>{one.name}</bdi> },
        { name: t("keys.role"), cell: (one) => <Chip>{t(`role.${one.role}`)}</Chip> },
        { name: t("keys.groups"), cell: (one) => (one.groups.length ? <bdi>{one.groups.join(", ")}</bdi> : null) },
        { name: t("keys.made"), cell: (one) => <RelativeTime at={one.createdAt} /> },
        {
          name: t("keys.used"),
          cell: (one) =>
            one.usedAt === null ? (
              <span className="text-ink-faint">{t("keys.never")}</span>
            ) : (
              <RelativeTime at={one.usedAt} />
            ),
        },
        {
          name: t("keys.expires"),
          cell: (one) =>
            one.expiresAt === null ? null : one.expiresAt <= now() ? (
              <Chip look="bad">{t("keys.expired")}</Chip>
            ) : (
              <RelativeTime at={one.expiresAt} />
            ),
        },
        {
          name: t("keys.revoke"),
          isNarrow: true,
          cell: (one) => (
            <Button
              kind="mild"
              onClick={() => props.onRevoke(one.name)}
              aria-label={t("keys.revokeThis", { name: one.name })}
            >
              <Trash2 className="size-4" aria-hidden /> {t("keys.revoke")}
            </Button>
          ),
        },
      ]}
    />
  );
}
