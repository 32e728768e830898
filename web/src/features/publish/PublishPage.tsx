import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { definition } from "@/api/queries";
import { Button } from "@/components/Button";
import { Confirm } from "@/components/Confirm";
import { CopyButton } from "@/components/CopyButton";
import { PageSection } from "@/components/DescriptionList";
import { LabelledField } from "@/components/LabelledField";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { ErrorMessage } from "@/components/StatusMessage";
import { textIn } from "@/i18n";
import { type Publication, publication, publish, unpublish } from "./publish";
import { LANGUAGES, type SnippetLanguage, sampleInput, snippet, widget } from "./snippets";

const LABELS = { title: "heading", text: "text", thanks: "thanks" } as const;

/** How people and programs outside start a workflow: a form by link, a frame on other sites, the API. */
export function PublishPage() {
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
      <PageSection title={t("publish.form")} about={t("publish.formAbout")}>
        <QueryResult query={known}>
          {(found) => <FormSettings key={found.changedAt} id={id} name={name} known={found} />}
        </QueryResult>
      </PageSection>
      <PageSection title={t("publish.api")} about={t("publish.apiAbout")}>
        <Snippets id={id} input={sampleInput(workflow.data?.input ?? null)} />
      </PageSection>
    </Page>
  );
}

function FormSettings({ id, name, known }: { id: string; name: string; known: Publication }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [texts, setTexts] = useState({ title: known.title, text: known.text, thanks: known.thanks });
  const [origins, setOrigins] = useState(known.origins.join("\n"));
  const [login, setLogin] = useState(known.login);
  const [output, setOutput] = useState(known.output);
  const [isLeaving, setLeaving] = useState(false);
  // Not `known`: a version that was read again later is not the one that the fields began with.
  const [read, setRead] = useState(known);
  const again = () => client.invalidateQueries({ queryKey: ["publication", id] });
  const saving = useMutation({
    mutationFn: (newLink: boolean) =>
      publish(id, { ...texts, login, output, origins: origins.split(/\s+/).filter(Boolean), newLink }, read),
    onSuccess: (saved) => {
      setRead(saved);
      return again();
    },
  });
  return (
    <form
      className="max-w-2xl space-y-4"
      onSubmit={(event) => {
        event.preventDefault();
        saving.mutate(false);
      }}
    >
      {saving.isError ? <ErrorMessage error={saving.error} /> : null}
      {known.path ? <PublishedLinks known={known} title={texts.title || name} /> : null}
      {(["title", "text", "thanks"] as const).map((field) => (
        <LabelledField key={field} name={t(`publish.${LABELS[field]}`)} about={t(`publish.${LABELS[field]}About`)}>
          {(its) => {
            const shared = {
              ...its,
              value: texts[field],
              onChange: (event: { target: { value: string } }) => setTexts({ ...texts, [field]: event.target.value }),
            };
            return field === "title" ? <input {...shared} placeholder={name} /> : <textarea {...shared} rows={2} />;
          }}
        </LabelledField>
      ))}
      <LabelledField name={t("publish.origins")} about={t("publish.originsAbout")}>
        {(its) => (
          <textarea
            {...its}
            rows={2}
            className={`${its.className} font-mono`}
            placeholder="https://www.example.com"
            value={origins}
            onChange={(event) => setOrigins(event.target.value)}
          />
        )}
      </LabelledField>
      <Check label={t("publish.output")} isOn={output} onChange={setOutput} />
      <Check label={t("publish.login")} isOn={login} onChange={setLogin} />
      <p className="flex flex-wrap gap-2">
        <Button kind="primary" type="submit" disabled={saving.isPending}>
          {t(known.published ? "publish.save" : "publish.publish")}
        </Button>
        {known.published ? (
          <>
            <Button disabled={saving.isPending} onClick={() => saving.mutate(true)} title={t("publish.newLinkAbout")}>
              {t("publish.newLink")}
            </Button>
            <Button kind="danger" onClick={() => setLeaving(true)}>
              {t("publish.unpublish")}
            </Button>
          </>
        ) : null}
      </p>
      {isLeaving ? (
        <Confirm
          title={t("publish.unpublishNamed", { name })}
          about={t("publish.unpublishAbout")}
          confirmLabel={t("publish.unpublish")}
          action={() =>
            unpublish(id, read)
              .then(() => setRead({ ...read, etag: "" }))
              .then(again)
          }
          onClose={() => setLeaving(false)}
        />
      ) : null}
    </form>
  );
}

function Check(props: { label: string; isOn: boolean; onChange: (isOn: boolean) => void }) {
  return (
    <label className="flex min-h-6 items-center gap-2">
      <input type="checkbox" checked={props.isOn} onChange={(event) => props.onChange(event.target.checked)} />
      {props.label}
    </label>
  );
}

function PublishedLinks({ known, title }: { known: Publication; title: string }) {
  const { t } = useTranslation();
  const server = window.location.origin;
  const link = `${server}${known.path}`;
  return (
    <div className="space-y-2 rounded-md border border-accent/60 bg-accent-soft p-3">
      <p className="flex flex-wrap items-center gap-2">
        <span className="font-medium">{t("publish.link")}</span>
        <a href={link} target="_blank" rel="noreferrer" className="font-mono text-xs break-all underline">
          {link}
        </a>
        <CopyButton text={link} name={t("publish.link")} />
      </p>
      {known.embedPath ? <Code name={t("publish.widget")} text={widget(server, known.embedPath, title)} /> : null}
    </div>
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

function Code({ name, text }: { name: string; text: string }) {
  return (
    <div>
      <p className="flex items-center justify-between">
        <span className="font-medium">{name}</span>
        <CopyButton text={text} name={name} />
      </p>
      <pre className="rounded-md bg-sunken p-3 font-mono text-xs whitespace-pre-wrap wrap-anywhere">{text}</pre>
    </div>
  );
}
