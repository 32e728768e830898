import { type InputHTMLAttributes, useState } from "react";
import { useTranslation } from "react-i18next";
import { textIn } from "@/i18n";
import { SuggestionInput } from "./SuggestionInput";
import { useWorkflowName } from "./useWorkflowName";
import { useWorkflowSearch } from "./useWorkflowSearch";

const WORDS_MAX = 200;

type Field = Omit<InputHTMLAttributes<HTMLInputElement>, "value" | "onChange" | "list" | "role">;

/** A field to choose one workflow by its name or id. An empty field means no workflow. */
export function WorkflowPicker({
  value,
  onChange,
  ...field
}: Field & { value: string; onChange: (id: string) => void }) {
  const { i18n } = useTranslation();
  const workflowName = useWorkflowName();
  const { entries, note, search } = useWorkflowSearch({ disabled: true });
  const [typed, setTyped] = useState<string | null>(null);
  const found = entries.map(({ id, names, name }) => {
    const text = textIn(names ?? name, i18n.language, id);
    return { id, name: text, about: text === id ? "" : id };
  });
  const matchingEntry =
    found.find((one) => one.id === typed?.trim()) ?? found.find((one) => one.name === typed?.trim());
  const choose = (id: string) => {
    setTyped(null);
    if (id !== value) onChange(id);
  };
  return (
    <SuggestionInput
      {...field}
      maxLength={WORDS_MAX}
      value={typed ?? (value ? workflowName(value) : "")}
      suggestions={found}
      note={note}
      onSearch={search}
      onType={(text) => {
        setTyped(text);
        if (!text.trim() && value) onChange("");
      }}
      onChoose={choose}
      onEnter={() => matchingEntry && choose(matchingEntry.id)}
      onFocus={(event) => event.target.select()}
      onBlur={() => (matchingEntry ? choose(matchingEntry.id) : setTyped(null))}
    />
  );
}
