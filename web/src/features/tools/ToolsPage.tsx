import { useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { PageSection } from "@/components/DescriptionList";
import { ServerText } from "@/components/ErrorDetail";
import { Listing, LoadMore } from "@/components/Listing";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { SearchBox } from "@/components/SearchBox";
import { EmptyMessage } from "@/components/StatusMessage";
import { ToggleChip } from "@/components/ToggleChip";
import { useDebouncedInput } from "@/components/useDebouncedInput";
import { useHasRole } from "@/components/useHasRole";
import { Connections } from "./Connections";
import { Servers } from "./Servers";
import { ToolChips } from "./ToolChips";
import { ToolDescription } from "./ToolDescription";
import { byOrigin, type Tool, toolsFound } from "./tools";

/** All tools by origin. */
export function ToolsPage() {
  const { t } = useTranslation();
  const [words, setWords] = useState("");
  const [typed, type] = useDebouncedInput(words, setWords);
  const [origin, setOrigin] = useState<string | null>(null);
  const known = useInfiniteQuery(toolsFound(words, origin));
  const isAdmin = useHasRole("admin");
  return (
    <Page
      title={t("tools.title")}
      about={t("tools.about")}
      actions={<SearchBox value={typed} onChange={type} label={t("tools.search")} />}
    >
      {isAdmin ? (
        <div className="mb-8">
          <Connections />
        </div>
      ) : null}
      <QueryResult query={known}>
        {({ pages }) => {
          const groups = byOrigin(pages.flatMap((page) => page.tools));
          const isCut = known.hasNextPage || pages.length > 1 || origin !== null;
          return (
            <>
              {isCut ? <Origins counts={pages[0]?.origins ?? {}} chosen={origin} onChoose={setOrigin} /> : null}
              {groups.length === 0 ? (
                <EmptyMessage isNew={!words} title={words ? t("tools.noMatch", { words }) : t("tools.none")} />
              ) : (
                groups.map(([from, found]) => (
                  <PageSection key={from} title={t(`origin.${from}`, from)}>
                    <ToolTable name={t(`origin.${from}`, from)} found={found} />
                  </PageSection>
                ))
              )}
            </>
          );
        }}
      </QueryResult>
      <LoadMore query={known} />
      {isAdmin ? null : (
        <div className="mt-8 empty:hidden">
          <Servers />
        </div>
      )}
    </Page>
  );
}

/** The number of tools by origin; each origin is a filter. */
function Origins(props: {
  counts: Readonly<Record<string, number>>;
  chosen: string | null;
  onChoose: (origin: string | null) => void;
}) {
  const { t, i18n } = useTranslation();
  const number = new Intl.NumberFormat(i18n.language);
  // The selected origin stays visible, so that the filter can be removed even without matches.
  const known = props.chosen ? { [props.chosen]: 0, ...props.counts } : props.counts;
  const counts = Object.entries(known).sort(([, a], [, b]) => b - a);
  return (
    <fieldset className="mb-4 flex flex-wrap gap-1.5">
      <legend className="sr-only">{t("tools.originName")}</legend>
      {counts.map(([origin, count]) => {
        const isOn = props.chosen === origin;
        return (
          <ToggleChip key={origin} isOn={isOn} onPress={() => props.onChoose(isOn ? null : origin)}>
            {t(`origin.${origin}`, origin)} <span className="tabular-nums">{number.format(count)}</span>
          </ToggleChip>
        );
      })}
    </fieldset>
  );
}

function ToolTable(props: { name: string; found: readonly Tool[] }) {
  const { t } = useTranslation();
  return (
    <Listing
      name={props.name}
      entries={props.found}
      keyOf={(one) => one.name}
      columns={[
        {
          name: t("tools.name"),
          cell: (one) => (
            <Link to="/tools/$name" params={{ name: one.name }} className="font-mono hover:underline">
              {one.name}
            </Link>
          ),
        },
        { name: t("tools.does"), cell: (one) => <ToolSummary tool={one} /> },
        { name: t("tools.says"), cell: (one) => <ToolChips tool={one} /> },
      ]}
    />
  );
}

/** The description of a tool; for a disabled tool also how to enable it. */
function ToolSummary({ tool: one }: { tool: Tool }) {
  return (
    <>
      <ToolDescription tool={one} look="line-clamp-2" />
      {one.enabled ? null : <ServerText text={one.off ?? ""} look="mt-0.5 text-xs text-ink-soft" />}
    </>
  );
}
