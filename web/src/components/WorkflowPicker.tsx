import { type InputHTMLAttributes, useState } from "react";
import { useTranslation } from "react-i18next";
import { textIn } from "@/i18n";
import { Suggesting } from "./Suggesting";
import { useFoundWorkflows } from "./useFoundWorkflows";
import { useWorkflowName } from "./useWorkflowName";

const WORDS_MAX = 200;

type Field = Omit<InputHTMLAttributes<HTMLInputElement>, "value" | "onChange" | "list" | "role">;

/** One of the workflows that are there, looked for as its name is typed; an emptied field is none of them. */
export function WorkflowPicker({
  value,
  onChange,
  ...field
}: Field & { value: string; onChange: (id: string) => void }) {
  const { i18n } = useTranslation();
  const called = useWorkflowName();
  const { entries, note, search } = useFoundWorkflows({ disabled: true });
  const [typed, setTyped] = useState<string | null>(null);
  const found = entries.map(({ id, names, name }) => {
    const text = textIn(names ?? name, i18n.language, id);
    return { id, name: text, about: text === id ? "" : id };
  });
  const meant = found.find((one) => one.id === typed?.trim()) ?? found.find((one) => one.name === typed?.trim());
  const choose = (id: string) => {
    setTyped(null);
    if (id !== value) onChange(id);
  };
  return (
    <Suggesting
      {...field}
      maxLength={WORDS_MAX}
      value={typed ?? (value ? called(value) : "")}
      suggestions={found}
      note={note}
      onSearch={search}
      onType={(text) => {
        setTyped(text);
        if (!text.trim() && value) onChange("");
      }}
      onChoose={choose}
      onEnter={() => meant && choose(meant.id)}
      onFocus={(event) => event.target.select()}
      onBlur={() => (meant ? choose(meant.id) : setTyped(null))}
    />
  );
}
