import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.tika.extractor.EmbeddedDocumentExtractor;
import org.apache.tika.extractor.ParsingEmbeddedDocumentExtractor;
import org.apache.tika.metadata.Metadata;
import org.apache.tika.parser.AutoDetectParser;
import org.apache.tika.parser.ParseContext;
import org.apache.tika.parser.Parser;
import org.apache.tika.parser.ocr.TesseractOCRConfig;
import org.apache.tika.sax.BodyContentHandler;

/** Writes the text of each file, and of those inside, into a folder: java -cp 'JARS/*' Tika.java SECONDS FOLDER FILE... */
public class Tika {
    public static void main(String[] arguments) throws Exception {
        AutoDetectParser parser = new AutoDetectParser();
        for (int i = 2; i < arguments.length; i++) {
            Path path = Path.of(arguments[i]);
            BodyContentHandler text = new BodyContentHandler(-1);
            var reader = Executors.newSingleThreadExecutor(work -> {
                Thread thread = new Thread(work);
                thread.setDaemon(true);
                return thread;
            });
            ParseContext context = new ParseContext();
            context.set(Parser.class, parser);
            var inner = new ParsingEmbeddedDocumentExtractor(context);
            // Names like image1.png are not shown to people.
            inner.setWriteFileNameToContent(false);
            context.set(EmbeddedDocumentExtractor.class, inner);
            TesseractOCRConfig scans = new TesseractOCRConfig();
            // If Tesseract is installed, it would add words of pictures.
            scans.setSkipOcr(true);
            context.set(TesseractOCRConfig.class, scans);
            var reading = reader.submit(() -> {
                try (InputStream data = Files.newInputStream(path)) {
                    parser.parse(data, text, new Metadata(), context);
                }
                return null;
            });
            Path folder = Path.of(arguments[1]);
            try {
                reading.get(Long.parseLong(arguments[0]), TimeUnit.SECONDS);
            } catch (Exception error) {
                Files.writeString(folder.resolve(path.getFileName() + ".failed"), error.toString());
            }
            Files.writeString(folder.resolve(path.getFileName() + ".txt"), text.toString());
        }
    }
}
