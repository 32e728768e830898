import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Confirm } from "@/components/Confirm";
import { PageSection } from "@/components/DescriptionList";
import { ErrorMessage } from "@/components/StatusMessage";
import { chatWorkflowsById } from "../chat/sessions";
import { ProgramOffers } from "./ProgramOffers";
import { ChatFields, Check, FormFields, SharedFields } from "./PublicationFields";
import { PublishedLinks } from "./PublishedLinks";
import { type Draft, draftOf, type Publication, publicationBody, publish, unpublish } from "./publish";

/** What the owner of a workflow publishes: a form, a chat, and what callers with a key are offered. One save. */
export function PublicationForm(props: {
  id: string;
  name: string;
  known: Publication;
  /** How many saves there were. */
  saves: number;
  onSaved: () => void;
}) {
  const { id, name, known } = props;
  const { t } = useTranslation();
  const client = useQueryClient();
  const [draft, setDraft] = useState(() => draftOf(known));
  // Not `known`: a version that was read again later is not the one that the fields began with.
  const [read, setRead] = useState(known);
  const chattable = useQuery(chatWorkflowsById([id]));
  const mayChat = draft.chat || (chattable.data?.length ?? 0) > 0;
  const again = () => client.invalidateQueries({ queryKey: ["publication", id] });
  const saving = useMutation({
    mutationFn: (newLink: boolean) => publish(id, publicationBody(draft, newLink), read),
    onSuccess: (saved) => {
      setRead(saved);
      props.onSaved();
      return again();
    },
  });
  const change = (part: Partial<Draft>) => setDraft({ ...draft, ...part });
  const isPublic = draft.form || draft.chat;
  return (
    <form
      className="max-w-2xl space-y-4"
      onSubmit={(event) => {
        event.preventDefault();
        saving.mutate(false);
      }}
    >
      {saving.isError ? <ErrorMessage error={saving.error} /> : null}
      {known.published ? <PublishedLinks saves={props.saves} known={known} title={draft.title || name} /> : null}
      <PageSection title={t("publish.pages")} about={t("publish.formAbout")}>
        <div className="space-y-4">
          <Check
            label={t("publish.form")}
            about={t("publish.formPageAbout")}
            isOn={draft.form}
            onChange={(form) => change({ form })}
          />
          {draft.form ? <FormFields draft={draft} change={change} /> : null}
          <Check
            label={t("publish.chat")}
            about={t(mayChat ? "publish.chatAbout" : "publish.chatImpossible")}
            isOn={draft.chat}
            isOff={!mayChat}
            onChange={(chat) => change({ chat })}
          />
          {draft.chat ? <ChatFields draft={draft} change={change} /> : null}
          {isPublic ? <SharedFields draft={draft} change={change} name={name} /> : null}
        </div>
      </PageSection>
      <PageSection title={t("publish.programs")} about={t("publish.programsAbout")}>
        <ProgramOffers id={id} draft={draft} mayChat={mayChat} change={change} />
      </PageSection>
      <FormButtons
        known={known}
        isPublic={isPublic}
        isBusy={saving.isPending}
        onNewLink={() => saving.mutate(true)}
        name={name}
        withdraw={() =>
          unpublish(id, read)
            .then(() => setRead({ ...read, etag: "" }))
            .then(again)
        }
      />
    </form>
  );
}

function FormButtons(props: {
  known: Publication;
  isPublic: boolean;
  isBusy: boolean;
  name: string;
  onNewLink: () => void;
  withdraw: () => Promise<unknown>;
}) {
  const { t } = useTranslation();
  const [isLeaving, setLeaving] = useState(false);
  const { known } = props;
  return (
    <p className="flex flex-wrap gap-2">
      <Button kind="primary" type="submit" disabled={props.isBusy}>
        {t(known.published || !props.isPublic ? "publish.save" : "publish.publish")}
      </Button>
      {known.published ? (
        <>
          <Button disabled={props.isBusy} onClick={props.onNewLink} title={t("publish.newLinkAbout")}>
            {t("publish.newLink")}
          </Button>
          <Button kind="danger" onClick={() => setLeaving(true)}>
            {t("publish.unpublish")}
          </Button>
        </>
      ) : null}
      {isLeaving ? (
        <Confirm
          title={t("publish.unpublishNamed", { name: props.name })}
          about={t("publish.unpublishAbout")}
          confirmLabel={t("publish.unpublish")}
          action={props.withdraw}
          onClose={() => setLeaving(false)}
        />
      ) : null}
    </p>
  );
}
