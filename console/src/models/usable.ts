/** The models that the user may use. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";
import { ApiError } from "../api/errors";

const SANDBOX_MODEL = "sandbox/echo";
/** The number of models that a field offers. The others are found by search. */
const MAX_OFFERED = 50;

async function usableModels(search: string, limit: number): Promise<{ names: string[]; total: number }> {
  const call = api.GET("/v1/models", { params: { query: { search, limit } } });
  const { data } = await dataOf(call);
  return { names: data.map(({ id }) => id), total: Number((await call).response.headers.get("x-total-count")) };
}

/** The first models that the user may use and whose names contain the text, and the number of all of them. */
export function useUsableModels(search: string | undefined) {
  const { data } = useQuery({
    queryKey: ["usable-models", search],
    placeholderData: keepPreviousData,
    queryFn: () => usableModels(search ?? "", MAX_OFFERED),
  });
  return data && { rows: data.names.map((name) => ({ id: name, name })), total: data.total };
}

/** Returns whether the user may use the model, or undefined while this is not known. */
export function useIsUsable(model: string | undefined): boolean | undefined {
  const { data } = useQuery({
    queryKey: ["usable-models", "one", model],
    enabled: model !== undefined,
    queryFn: async () => {
      try {
        await dataOf(api.GET("/v1/models/{model}", { params: { path: { model: model ?? "" } } }));
        return true;
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return false;
        throw error;
      }
    },
  });
  return data;
}

/** Returns the model that example programs call: the sandbox's, if the user may use it, otherwise the first model that
 * the user may use. */
export function useExampleModel(): string {
  const { data } = useQuery({
    queryKey: ["usable-models", "example"],
    queryFn: async () => {
      const sandbox = await usableModels(SANDBOX_MODEL, MAX_OFFERED);
      return sandbox.names.includes(SANDBOX_MODEL) ? SANDBOX_MODEL : ((await usableModels("", 1)).names[0] ?? SANDBOX_MODEL);
    },
  });
  return data ?? SANDBOX_MODEL;
}
