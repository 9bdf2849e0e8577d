import { ChevronDown, ChevronUp, Plus, X } from "lucide-react";
import { useId } from "react";
import { useFieldArray, type UseFormReturn } from "react-hook-form";
import { Button } from "../parts/Button";
import { FieldSet, TextField } from "../parts/fields";
import { DECIMAL } from "../parts/forms";
import { routingTexts } from "../texts/routing";
import { useModelNames } from "./api";
import styles from "./ChainField.module.css";
import type { PolicyFields } from "./fields";

const MODEL_PATTERN = /^[^/\s]+\/\S+$/;

/** The field for the fallback chain, an ordered list of models. Weights are used only by the strategy `balanced`. */
export function ChainField({ form, isWeighted }: { form: UseFormReturn<PolicyFields>; isWeighted: boolean }) {
  const routing = routingTexts;
  const { fields, append, remove, swap } = useFieldArray({ control: form.control, name: "fallback_chain" });
  const models = useModelNames();
  const { fallback_chain: faults } = form.formState.errors;
  const listId = useId();
  return (
    <FieldSet label={routing.chain} hint={isWeighted ? routing.chainWeightedHint : routing.chainHint} fault={faults?.message ?? faults?.root?.message}>
      {fields.length > 0 && (
        <ol className={styles["chain"]} aria-label={routing.chain}>
          {fields.map(({ id }, at) => (
            <li key={id} className={styles["entry"]}>
              <span className={styles["model"]}>
                <TextField
                  label={routing.entry(at + 1)} list={listId} autoComplete="off" spellCheck={false} autoCapitalize="none" maxLength={321}
                  fault={faults?.[at]?.model?.message}
                  {...form.register(`fallback_chain.${at}.model`, { pattern: { value: MODEL_PATTERN, message: routing.entryPattern }, required: routing.entryPattern })}
                />
              </span>
              {isWeighted && (
                <span className={styles["weight"]}>
                  <TextField
                    label={routing.weight(at + 1)} inputMode="decimal" autoComplete="off" fault={faults?.[at]?.weight?.message}
                    {...form.register(`fallback_chain.${at}.weight`, { pattern: { value: DECIMAL, message: routing.number } })}
                  />
                </span>
              )}
              <span className={styles["buttons"]}>
                <Button look="quiet" size="icon" aria-label={routing.earlier(at + 1)} disabled={at === 0} onClick={() => swap(at, at - 1)}><ChevronUp aria-hidden /></Button>
                <Button look="quiet" size="icon" aria-label={routing.later(at + 1)} disabled={at === fields.length - 1} onClick={() => swap(at, at + 1)}><ChevronDown aria-hidden /></Button>
                <Button look="quiet" size="icon" aria-label={routing.removeEntry(at + 1)} onClick={() => remove(at)}><X aria-hidden /></Button>
              </span>
            </li>
          ))}
        </ol>
      )}
      <div><Button size="small" onClick={() => append({ model: "", weight: "1" })}><Plus aria-hidden />{routing.addEntry}</Button></div>
      <datalist id={listId}>{models.data?.map((name) => <option key={name} value={name} />)}</datalist>
    </FieldSet>
  );
}
