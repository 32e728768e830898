import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus } from "lucide-react";
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
import { deleteSecret, type OtherSecret, type Secret, type SecretRule, secrets, secretUses } from "./access";
import { CredentialDialog } from "./CredentialDialog";
import { SecretDialog } from "./SecretDialog";

type PendingAction = { action: "set" | "credential"; known: Secret | null } | { action: "delete"; known: Secret };

/** The names of stored secrets and their uses. Values are never shown. */
export function SecretsPage() {
  const { t } = useTranslation();
  const client = useQueryClient();
  const search = useSearch();
  const known = useInfiniteQuery(secrets(search.words));
  const elsewhere = known.data?.pages[0]?.elsewhere ?? [];
  const hidden = new Set(elsewhere.map((one) => one.name));
  const [doing, setDoing] = useState<PendingAction | null>(null);
  const again = () => client.invalidateQueries({ queryKey: ["access", "secrets"] });
  return (
    <Page
      title={t("secrets.title")}
      about={t("secrets.about")}
      actions={
        <>
          <LargeListSearch search={search} query={known} label={t("secrets.search")} />
          <Button onClick={() => setDoing({ action: "credential", known: null })}>
            <Plus className="size-4" aria-hidden /> {t("credentials.add")}
          </Button>
          <Button kind="primary" onClick={() => setDoing({ action: "set", known: null })}>
            <Plus className="size-4" aria-hidden /> {t("secrets.add")}
          </Button>
        </>
      }
    >
      <QueryResult query={known}>
        {({ pages }) => {
          const stored = pages.flatMap((page) => page.secrets);
          if (stored.length > 0) return <SecretTable stored={stored} hidden={hidden} onDo={setDoing} />;
          if (search.words) return <EmptyMessage title={t("secrets.noMatch", { words: search.words })} />;
          return (
            <EmptyMessage isNew title={t("secrets.none")}>
              {t("secrets.noneHint")}
            </EmptyMessage>
          );
        }}
      </QueryResult>
      <LoadMore query={known} />
      {elsewhere.length > 0 ? <ExternalSecrets all={elsewhere} /> : null}
      {doing?.action === "set" ? (
        <SecretDialog known={doing.known} onSet={again} onClose={() => setDoing(null)} />
      ) : null}
      {doing?.action === "credential" ? (
        <CredentialDialog known={doing.known} onSet={again} onClose={() => setDoing(null)} />
      ) : null}
      {doing?.action === "delete" ? (
        <Confirm
          title={t("secrets.deleteNamed", { name: doing.known.name })}
          about={t("secrets.deleteAbout")}
          confirmLabel={t("secrets.delete")}
          action={() => deleteSecret(doing.known).then(again)}
          onClose={() => setDoing(null)}
        />
      ) : null}
    </Page>
  );
}

/** Secrets from sources outside the store, which take precedence. */
function ExternalSecrets({ all }: { all: readonly OtherSecret[] }) {
  const { t } = useTranslation();
  return (
    <div className="mt-8">
      <PageSection title={t("secrets.elsewhere")} about={t("secrets.elsewhereAbout")}>
        <Listing
          name={t("secrets.elsewhere")}
          entries={all}
          keyOf={(one) => one.name}
          columns={[
            { name: t("secrets.name"), cell: (one) => <code>{one.name}</code> },
            { name: t("secrets.source"), cell: (one) => t(`secrets.from.${one.source}`) },
            { name: t("secrets.goes"), cell: (one) => <AllowedTargets rule={one} /> },
          ]}
        />
      </PageSection>
    </div>
  );
}

function SecretTable(props: {
  stored: readonly Secret[];
  hidden: ReadonlySet<string>;
  onDo: (doing: PendingAction) => void;
}) {
  const { t } = useTranslation();
  return (
    <Listing
      name={t("secrets.title")}
      entries={props.stored}
      keyOf={(one) => one.name}
      columns={[
        {
          name: t("secrets.name"),
          cell: (one) => (
            <>
              <code>secret.{one.name}</code>{" "}
              {one.credential ? (
                <Chip look={one.credential.connected ? "plain" : "careful"}>
                  {t(
                    one.credential.connected ? `credentials.types.${one.credential.type}` : "credentials.notConnected",
                  )}
                </Chip>
              ) : null}{" "}
              {props.hidden.has(one.name) ? <Chip look="careful">{t("secrets.hidden")}</Chip> : null}
            </>
          ),
        },
        { name: t("secrets.uses"), cell: (one) => <Uses name={one.name} /> },
        { name: t("secrets.goes"), cell: (one) => <AllowedTargets rule={one} /> },
        {
          name: t("secrets.changed"),
          cell: (one) => (
            <>
              <RelativeTime at={one.changedAt} />{" "}
              {one.changedBy ? <bdi>{t("secrets.by", { name: one.changedBy })}</bdi> : null}
            </>
          ),
        },
        {
          name: t("secrets.actions"),
          isNarrow: true,
          cell: (one) => (
            <span className="inline-flex gap-2">
              <Button
                onClick={() => props.onDo({ action: one.credential ? "credential" : "set", known: one })}
                aria-label={t("secrets.replaceThis", { name: one.name })}
              >
                {t("secrets.replace")}
              </Button>
              <Button
                kind="mild"
                onClick={() => props.onDo({ action: "delete", known: one })}
                aria-label={t("secrets.deleteThis", { name: one.name })}
              >
                {t("secrets.delete")}
              </Button>
            </span>
          ),
        },
      ]}
    />
  );
}

/** The hosts and tools that documents may send the secret to. */
function AllowedTargets({ rule }: { rule: SecretRule }) {
  const { t } = useTranslation();
  const allowed = [...rule.hosts, ...rule.tools];
  if (allowed.length === 0) return <span className="text-ink-faint">{t("secrets.nowhere")}</span>;
  return <span className="font-mono break-words">{allowed.join(", ")}</span>;
}

/** The workflows, agents and settings that name the secret. */
function Uses({ name }: { name: string }) {
  const { t } = useTranslation();
  const known = useQuery(secretUses(name));
  if (known.data === undefined) return null;
  const { workflows, agents, settings } = known.data;
  if (workflows.length + agents.length + settings.length === 0)
    return <span className="text-ink-faint">{t("secrets.unused")}</span>;
  return (
    <span className="flex flex-wrap gap-x-2 gap-y-0.5">
      {workflows.map((id) => (
        <Link key={id} to="/workflows/$id" params={{ id }} className="font-mono underline">
          {id}
        </Link>
      ))}
      {agents.map((one) => (
        <span key={one}>{t("secrets.agent", { name: one })}</span>
      ))}
      {settings.map((one) => (
        <span key={one}>{t("secrets.setting", { name: one })}</span>
      ))}
    </span>
  );
}
