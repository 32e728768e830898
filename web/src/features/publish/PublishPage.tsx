import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { definition } from "@/api/queries";
import { PageSection } from "@/components/DescriptionList";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { textIn } from "@/i18n";
import { Code } from "./Code";
import { PublicationForm } from "./PublicationForm";
import { publication } from "./publish";
import { LANGUAGES, type SnippetLanguage, sampleInput, snippet } from "./snippets";

/** How people and programs outside start a workflow: a form and a chat by link, frames on other sites, MCP, the API. */
export function PublishPage() {
  const [saves, setSaves] = useState(0); // A save makes a new form.
  const { t, i18n } = useTranslation();
  const { id } = useParams({ from: "/workflows/$id/publish" });
  const workflow = useQuery(definition(id));
  const known = useQuery(publication(id));
  const name = textIn(workflow.data?.name, i18n.language, id);
  return (
    <Page
      title={t("publish.title", { name })}
      about={t("publish.about")}
      actions={
        <Link to="/workflows/$id" params={{ id }} className="inline-flex min-h-8 items-center underline">
          {t("publish.back")}
        </Link>
      }
    >
      <QueryResult query={known}>
        {(found) => (
          <PublicationForm
            key={found.changedAt}
            id={id}
            name={name}
            known={found}
            saves={saves}
            onSaved={() => setSaves((before) => before + 1)}
          />
        )}
      </QueryResult>
      <PageSection title={t("publish.api")} about={t("publish.apiAbout")}>
        <Snippets id={id} input={sampleInput(workflow.data?.input ?? null)} />
      </PageSection>
    </Page>
  );
}

function Snippets({ id, input }: { id: string; input: Parameters<typeof snippet>[3] }) {
  const { t } = useTranslation();
  const [language, setLanguage] = useState<SnippetLanguage>("curl");
  return (
    <>
      <div role="radiogroup" aria-label={t("publish.language")} className="mb-2 flex gap-3">
        {LANGUAGES.map((one) => (
          <label key={one} className="flex min-h-6 items-center gap-1.5">
            <input type="radio" name="language" checked={one === language} onChange={() => setLanguage(one)} />
            {t(`publish.languages.${one}`)}
          </label>
        ))}
      </div>
      <Code name={t(`publish.languages.${language}`)} text={snippet(language, window.location.origin, id, input)} />
    </>
  );
}
