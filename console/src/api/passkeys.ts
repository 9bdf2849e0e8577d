/** Passkeys in the browser: creating one, and proving that one is there. */
import { texts } from "../texts";
import { ApiError } from "./errors";

type Options = Record<string, unknown>;

export const canUsePasskeys = (): boolean => "PublicKeyCredential" in window && "parseCreationOptionsFromJSON" in PublicKeyCredential;

/** Asks the browser for a new passkey. Raises ApiError with a text for people. */
export function createPasskey(options: Options): Promise<Options> {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options as never);
  return credential(() => navigator.credentials.create({ publicKey }));
}

/** Asks the browser to sign with a passkey. Raises ApiError with a text for people. */
export function signWithPasskey(options: Options): Promise<Options> {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options as never);
  return credential(() => navigator.credentials.get({ publicKey }));
}

async function credential(ask: () => Promise<Credential | null>): Promise<Options> {
  try {
    const answer = (await ask()) as PublicKeyCredential;
    return answer.toJSON() as unknown as Options;
  } catch (error) {
    const name = error instanceof DOMException ? error.name : "";
    throw new ApiError(0, texts.passkeys.faults[name] ?? texts.passkeys.fault);
  }
}
