import { useTranslation } from "react-i18next";
import { Chip } from "@/components/Chip";

export function TagList({ tags }: { tags: readonly string[] }) {
  const { t } = useTranslation();
  return (
    <ul className="mt-auto flex flex-wrap gap-1 pt-1" aria-label={t("templates.tags")}>
      {tags.map((tag) => (
        <li key={tag}>
          <Chip>{t(`templates.tag.${tag}`, tag)}</Chip>
        </li>
      ))}
    </ul>
  );
}
