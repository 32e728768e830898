import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Text } from "@/api/views";
import { Button } from "@/components/Button";
import { Chip } from "@/components/Chip";
import { Listing, LoadMore } from "@/components/Listing";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { RelativeTime } from "@/components/RelativeTime";
import { SearchBox } from "@/components/SearchBox";
import { EmptyMessage } from "@/components/StatusMessage";
import { useDebouncedInput } from "@/components/useDebouncedInput";
import { useHasRole } from "@/components/useHasRole";
import { textIn } from "@/i18n";
import { type Agent, agentsFound, stringsOf, textOf } from "./agents";
import { NewAgentDialog } from "./NewAgentDialog";

const TOOLS_SHOWN = 4;

/** Saved agents, which several workflows can use. */
export function AgentsPage() {
  const { t } = useTranslation();
  const mayMake = useHasRole("editor");
  const [words, setWords] = useState("");
  const [typed, type] = useDebouncedInput(words, setWords);
  const known = useInfiniteQuery(agentsFound(words));
  const [making, setMaking] = useState(false);
  return (
    <Page
      title={t("agents.title")}
      about={t("agents.about")}
      actions={
        <>
          <SearchBox value={typed} onChange={type} label={t("agents.search")} />
          {mayMake ? (
            <Button kind="primary" onClick={() => setMaking(true)}>
              <Plus className="size-4" aria-hidden /> {t("agents.new")}
            </Button>
          ) : null}
        </>
      }
    >
      <QueryResult query={known}>
        {({ pages }) => {
          const found = pages.flatMap((page) => page.agents);
          if (found.length > 0) return <AgentTable found={found} />;
          if (words) return <EmptyMessage title={t("agents.noMatch", { words })} />;
          return (
            <EmptyMessage isNew title={t("agents.none")}>
              {t("agents.noneHint")}
            </EmptyMessage>
          );
        }}
      </QueryResult>
      <LoadMore query={known} />
      {making ? <NewAgentDialog onClose={() => setMaking(false)} /> : null}
    </Page>
  );
}

function AgentTable({ found }: { found: readonly Agent[] }) {
  const { t, i18n } = useTranslation();
  return (
    <Listing
      name={t("agents.title")}
      entries={found}
      keyOf={(one) => one.name}
      columns={[
        {
          name: t("agents.name"),
          cell: (one) => (
            <Link to="/agents/$name" params={{ name: one.name }} className="hover:underline">
              {one.name}
            </Link>
          ),
        },
        {
          name: t("agents.system"),
          cell: (one) => (
            <span className="line-clamp-2 wrap-anywhere">
              {textIn(one.agent.system as Text | undefined, i18n.language)}
            </span>
          ),
        },
        {
          name: t("agents.model"),
          cell: (one) =>
            textOf(one.agent.model) ? (
              <span className="font-mono text-xs">{textOf(one.agent.model)}</span>
            ) : (
              <span className="text-ink-faint">{t("agents.usual")}</span>
            ),
        },
        { name: t("agents.tools"), cell: (one) => <ToolChips names={stringsOf(one.agent.tools)} /> },
        {
          name: t("agents.saved"),
          cell: (one) => (
            <span>
              <RelativeTime at={one.savedAt} />
              <span className="block text-xs text-ink-faint">{t("agents.revision", { revision: one.revision })}</span>
            </span>
          ),
        },
      ]}
    />
  );
}

function ToolChips({ names }: { names: readonly string[] }) {
  if (names.length === 0) return null;
  return (
    <span className="flex flex-wrap gap-1">
      {names.slice(0, TOOLS_SHOWN).map((one) => (
        <Chip key={one}>{one}</Chip>
      ))}
      {names.length > TOOLS_SHOWN ? <Chip title={names.join(", ")}>+{names.length - TOOLS_SHOWN}</Chip> : null}
    </span>
  );
}
